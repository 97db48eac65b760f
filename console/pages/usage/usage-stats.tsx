/** The four figures of the explorer: usage, cost, average, events. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { type DayRange, toInstants } from '../../components/range.ts';
import { countMinorDigits, formatCount, formatMoney } from '../../figures/format.ts';
import { Money, Quantity, Unknown, WhyButton } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { buildUncountedCountsQuery } from '../events/event-queries.ts';
import { computeAverage } from '../plans/price-figures.ts';
import styles from './usage.module.css';
import type { UsageMeter } from './usage-controls.tsx';
import { computeChange, formatPercent, roundAmount } from './usage-figures.ts';
import type { Analytics, MeterUsage } from './usage-queries.ts';
import { USAGE_TEXTS } from './usage-texts.ts';

const FROM = '/env/$environment_id/usage';

type UsageStatsProps = {
  usage: MeterUsage;
  before: MeterUsage | undefined;
  beforeName: string;
  cost: Analytics | undefined;
  meter: UsageMeter;
  external_customer_id: string | undefined;
  range: DayRange;
  onWhy: () => void;
};

export function UsageStats({
  usage,
  before,
  beforeName,
  cost,
  meter,
  external_customer_id,
  range,
  onWhy,
}: UsageStatsProps): ReactNode {
  const texts = useTexts(USAGE_TEXTS);
  const language = useLanguage();
  const change = before ? computeChange(usage.value, before.value) : null;
  const totals = (cost?.totals ?? []).filter(({ total_cost }) => total_cost !== null);
  const only = totals.length === 1 ? totals[0] : undefined;
  const scale = usage.value.replace(/\..*/, '').length > 6 ? 6 : usage.value.replace(/\..*/, '').length > 3 ? 3 : 0;
  const average = only?.total_cost ? computeAverage({ quantity: usage.value, amount: only.total_cost }, scale) : null;
  return (
    <dl className={styles.stats}>
      <Stat label={texts.usage} figure={<Quantity value={usage.value} />}>
        {change === null ? null : texts.versus(formatPercent(language, change, { isChange: true }), beforeName)}
      </Stat>
      <Stat
        label={texts.cost}
        figure={
          totals.length === 0 ? (
            <Unknown />
          ) : (
            totals.map(({ currency, total_cost }) => (
              <WhyButton
                key={currency}
                why={texts.why(formatMoney(language, roundAmount(total_cost!, countMinorDigits(currency)), currency))}
                onOpen={onWhy}
              >
                <Money amount={roundAmount(total_cost!, countMinorDigits(currency))} currency={currency} />
              </WhyButton>
            ))
          )
        }
      >
        {cost === undefined ? null : totals.length === 0 ? texts.noPrice : texts.costHint}
      </Stat>
      <Stat
        label={texts.average}
        figure={average === null ? <Unknown /> : <Money amount={average} currency={only!.currency} />}
      >
        {average === null ? null : texts.per(scale)}
      </Stat>
      <Stat label={texts.events} figure={formatCount(language, usage.event_count)}>
        <NotCounted event_name={meter.event_name} external_customer_id={external_customer_id} range={range} />
      </Stat>
    </dl>
  );
}

type StatProps = { label: string; figure: ReactNode; children: ReactNode };

function Stat({ label, figure, children }: StatProps): ReactNode {
  return (
    <div>
      <dt className="label">{label}</dt>
      <dd>
        <span className={styles.figure}>{figure}</span>
        <span className={styles.note}>{children}</span>
      </dd>
    </div>
  );
}

/** Events of the name that no meter could use. */
type NotCountedProps = { event_name: string; external_customer_id: string | undefined; range: DayRange };

function NotCounted({ event_name, external_customer_id, range }: NotCountedProps): ReactNode {
  const texts = useTexts(USAGE_TEXTS);
  const language = useLanguage();
  const customer = external_customer_id === undefined ? {} : { external_customer_id };
  const counts = useQuery({
    ...buildUncountedCountsQuery({ event_name, ...customer, ...toInstants(range) }),
    retry: false,
  });
  const found = (counts.data?.counts ?? []).reduce((sum, { event_count }) => sum + event_count, 0);
  if (found === 0) return null;
  return (
    <Link
      from={FROM}
      to="/env/$environment_id/events"
      search={{
        tab: 'uncounted',
        name: event_name,
        from: range.from,
        to: range.to,
        ...(external_customer_id === undefined ? {} : { customer: external_customer_id }),
      }}
      className={styles.bad}
    >
      {texts.notCounted(formatCount(language, found))}
    </Link>
  );
}
