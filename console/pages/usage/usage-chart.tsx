/** The chart of the usage explorer: the largest groups, one line of all others, the period before, and marks of price changes and corrections. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import type { ChartMark, ChartSeries } from '../../charts/series.ts';
import { TimeSeries } from '../../charts/time-series.tsx';
import { usePages } from '../../client/pages.ts';
import { Choice } from '../../components/choice.tsx';
import { Section } from '../../components/page.tsx';
import type { DayRange } from '../../components/range.ts';
import { Loading } from '../../components/states.tsx';
import { findLocale, formatCount } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import styles from './usage.module.css';
import type { UsageMeter } from './usage-controls.tsx';
import { listCorrectionMarks, listPriceChanges, moveWindows } from './usage-figures.ts';
import { type Analytics, buildCorrectedQuery, type MeterUsage, type UsageSplit } from './usage-queries.ts';
import { buildCostSeries, buildUsageSeries, countUndrawn, countUndrawnCosts, fillUsage } from './usage-series.ts';
import { USAGE_TEXTS } from './usage-texts.ts';
import type { UsageWindowSize } from './usage-window.ts';

type UsageChartProps = {
  /** Cost over time is known of one customer. */
  external_customer_id: string | undefined;
  onShow: (show: 'cost' | undefined) => void;
  title: string;
  usage: MeterUsage;
  before: MeterUsage | undefined;
  beforeRange: DayRange;
  beforeName: string;
  split: UsageSplit | null;
  /** Draws the cost of each line item instead of usage. */
  cost: Analytics | undefined;
  range: DayRange;
  window: UsageWindowSize;
  meter: UsageMeter;
  now_ms: number;
};

export function UsageChart(props: UsageChartProps): ReactNode {
  const {
    external_customer_id,
    onShow,
    title,
    usage,
    before,
    beforeRange,
    beforeName,
    split,
    cost,
    range,
    window,
    meter,
    now_ms,
  } = props;
  const texts = useTexts(USAGE_TEXTS);
  const language = useLanguage();
  const marks = useMarks({ meter, external_customer_id, range, window });
  const series = useMemo((): ChartSeries[] => {
    const terms = { window, now_ms, other: texts.other };
    if (cost) return buildCostSeries(cost, { ...terms, range });
    const aggregation = meter.aggregation.type;
    const parts = buildUsageSeries(usage, { ...terms, range, split, meter, aggregation });
    if (!before) return parts;
    const points = fillUsage(before, { ...terms, range: beforeRange, aggregation });
    return [
      ...parts,
      { key: 'before', label: beforeName, points: moveWindows(points, beforeRange, range, window), isBefore: true },
    ];
  }, [usage, before, beforeRange, beforeName, split, cost, range, window, meter, now_ms, texts]);
  const undrawn = cost ? countUndrawnCosts(cost) : countUndrawn(split, meter.aggregation.type);
  const showAt = (at: string) => formatWindow(language, at, window);
  const currency = cost?.totals[0]?.currency ?? null;
  return (
    <Section
      title={title}
      {...(before && !cost ? { hint: texts.dashed(beforeName) } : {})}
      end={
        <Choice<'usage' | 'cost'>
          label={texts.show}
          value={cost ? 'cost' : 'usage'}
          options={[
            { value: 'usage', label: texts.usage },
            { value: 'cost', label: texts.cost, blocked: external_customer_id !== undefined ? null : texts.costOfOne },
          ]}
          onValue={(value) => onShow(value === 'cost' ? 'cost' : undefined)}
        />
      }
    >
      {split?.isPending ? (
        <Loading rows={6} />
      ) : (
        <>
          <TimeSeries
            label={title}
            series={series}
            marks={marks}
            showAt={showAt}
            {...(cost ? { showValue: (value: string) => <Money amount={value} currency={currency} /> } : {})}
          />
          {undrawn > 0 && (
            <p className={styles.foot}>
              {(cost ? texts.costNotDrawn : texts.notDrawn)(formatCount(language, undrawn))}
            </p>
          )}
        </>
      )}
    </Section>
  );
}

type MarksInput = Pick<UsageChartProps, 'meter' | 'external_customer_id' | 'range' | 'window'>;

/** Reads the marks of the range: price changes of the meter and corrected events. */
function useMarks({ meter, external_customer_id, range, window }: MarksInput): ChartMark[] {
  const texts = useTexts(USAGE_TEXTS);
  const prices = usePages('/prices', {
    query: { meter_ids: meter.id, entity_type: 'PLAN', expand: 'plan' } as never,
  });
  const corrected = useQuery({
    ...buildCorrectedQuery({
      event_name: meter.event_name,
      range,
      ...(external_customer_id === undefined ? {} : { external_customer_id }),
    }),
    // Without the permission to read events the chart has no marks.
    retry: false,
  });
  return useMemo(
    () => [
      ...listPriceChanges(
        (prices.rows as unknown as PlanPrice[]).map(({ entity_id, start_date, end_date, plan }) => ({
          entity_id: entity_id ?? null,
          start_date: start_date ?? null,
          end_date: end_date ?? null,
          plan_name: plan?.name ?? null,
        })),
        range,
        texts.priceChange,
      ),
      ...listCorrectionMarks(corrected.data?.items ?? [], { range, window, label: texts.correctedEvents }),
    ],
    [prices.rows, corrected.data, range, window, texts],
  );
}

function formatWindow(language: 'en' | 'de', at: string, window: UsageWindowSize): string {
  const options: Intl.DateTimeFormatOptions =
    window === 'MONTH'
      ? { month: 'short', year: 'numeric' }
      : { day: 'numeric', month: 'short', ...(window === 'HOUR' ? { hour: '2-digit', minute: '2-digit' } : {}) };
  return new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : findLocale(language), {
    ...options,
    hourCycle: 'h23',
    timeZone: 'UTC',
  }).format(new Date(at));
}
