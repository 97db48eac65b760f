/** The terms of a price, one a row. A stored price shows the terms that stay; its name and key can change. */
import { Select, TextInput } from '@mantine/core';
import { DateTimePicker } from '@mantine/dates';
import '@mantine/dates/styles.css';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { NumberInput } from '../../components/number-input.tsx';
import { Section } from '../../components/page.tsx';
import { useTexts } from '../../texts/texts.ts';
import { PERIODS, type PriceDraft, type PricePeriod } from './price-draft.ts';
import styles from './price-editor.module.css';
import { PRICE_TEXTS } from './price-texts.ts';

const CURRENCIES = ['usd', 'eur', 'gbp', 'chf', 'jpy', 'cad', 'aud', 'sek', 'nok', 'dkk', 'pln', 'inr', 'brl', 'kwd'];
const METERS_MAX = 100;

type PriceTermsProps = {
  draft: PriceDraft;
  onDraft: (draft: PriceDraft) => void;
  isStored: boolean;
  isReadOnly: boolean;
  errorAt: (field: string) => string | undefined;
  runningCount: number;
};

export function PriceTerms({ draft, onDraft, isStored, isReadOnly, errorAt, runningCount }: PriceTermsProps): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const change = (changes: Partial<PriceDraft>) => onDraft({ ...draft, ...changes });
  const isFixed = draft.type === 'FIXED';
  const isOnce = draft.billing_period === 'ONETIME';
  return (
    <Section title={texts.terms}>
      <div className={styles.terms}>
        <Term label={texts.name}>
          <TextInput
            aria-label={texts.name}
            readOnly={isReadOnly}
            value={draft.display_name}
            error={errorAt('display_name')}
            onChange={({ currentTarget }) => change({ display_name: currentTarget.value })}
          />
        </Term>
        {!isFixed && !isStored && <MeterTerm {...{ draft, errorAt }} onMeter={change} />}
        {!isStored && <OpenTerms {...{ draft, errorAt, isFixed, isOnce, change }} />}
        <Term label={texts.starts} hint={texts.startsHint}>
          <DateTimePicker
            aria-label={texts.starts}
            placeholder={texts.startsNow}
            readOnly={isReadOnly}
            clearable
            valueFormat="D MMM YYYY, HH:mm"
            value={draft.starts_at === '' ? null : draft.starts_at.slice(0, 19).replace('T', ' ')}
            onChange={(value) => change({ starts_at: value === null ? '' : `${value.replace(' ', 'T')}Z` })}
            error={errorAt('effective_from') ?? errorAt('start_date')}
          />
        </Term>
        <Term label={texts.lookupKey} hint={texts.optional}>
          <TextInput
            aria-label={texts.lookupKey}
            readOnly={isReadOnly}
            classNames={{ input: 'mono' }}
            value={draft.lookup_key}
            error={errorAt('lookup_key')}
            onChange={({ currentTarget }) => change({ lookup_key: currentTarget.value })}
          />
        </Term>
        <Term label={texts.commitment}>
          <span className="muted">{texts.commitmentWhere}</span>
        </Term>
        {!isFixed && (
          <Term label={texts.allowance}>
            <span className="muted">{texts.allowanceWhere}</span>
          </Term>
        )}
        <Term label={texts.appliesTo}>
          {runningCount > 0 ? texts.appliesAll(runningCount) : texts.appliesNew}
        </Term>
      </div>
    </Section>
  );
}

/** Terms that a price has from its creation for good. */
function OpenTerms({
  draft,
  errorAt,
  isFixed,
  isOnce,
  change,
}: Pick<PriceTermsProps, 'draft' | 'errorAt'> & {
  isFixed: boolean;
  isOnce: boolean;
  change: (changes: Partial<PriceDraft>) => void;
}): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const periods = PERIODS.filter((period) => isFixed || period !== 'ONETIME');
  return (
    <>
      <Term label={texts.currency}>
        <Select
          aria-label={texts.currency}
          searchable
          data={CURRENCIES.map((code) => ({ value: code, label: code.toUpperCase() }))}
          value={draft.currency}
          onChange={(currency) => currency && change({ currency })}
          error={errorAt('currency')}
        />
      </Term>
      <Term label={texts.billed}>
        <Select
          aria-label={texts.billed}
          data={periods.map((period) => ({ value: period, label: texts.period(period) }))}
          value={draft.billing_period}
          onChange={(period) => period && change({ billing_period: period as PricePeriod })}
          error={errorAt('billing_period')}
        />
      </Term>
      {!isOnce && (
        <Term label={texts.periodCount}>
          <NumberInput
            aria-label={texts.periodCount}
            value={draft.billing_period_count}
            onValue={(billing_period_count) => change({ billing_period_count })}
            error={errorAt('billing_period_count')}
          />
        </Term>
      )}
      <Term label={texts.cadence}>
        {isFixed && !isOnce ? (
          <Select
            aria-label={texts.cadence}
            data={[
              { value: 'ADVANCE', label: texts.advance },
              { value: 'ARREAR', label: texts.arrears },
            ]}
            value={draft.invoice_cadence}
            onChange={(cadence) => cadence && change({ invoice_cadence: cadence as PriceDraft['invoice_cadence'] })}
            error={errorAt('invoice_cadence')}
          />
        ) : isFixed ? (
          texts.advance
        ) : (
          texts.arrears
        )}
      </Term>
      {isFixed && draft.model !== 'flat' && (
        <Term label={texts.minQuantity}>
          <NumberInput
            aria-label={texts.minQuantity}
            value={draft.min_quantity}
            onValue={(min_quantity) => change({ min_quantity })}
            error={errorAt('min_quantity')}
          />
        </Term>
      )}
      {isFixed && !isOnce && (
        <Term label={texts.trialDays} hint={texts.optional}>
          <NumberInput
            aria-label={texts.trialDays}
            value={draft.trial_period_days}
            onValue={(trial_period_days) => change({ trial_period_days })}
            error={errorAt('trial_period_days')}
          />
        </Term>
      )}
    </>
  );
}

function MeterTerm({
  draft,
  errorAt,
  onMeter,
}: Pick<PriceTermsProps, 'draft' | 'errorAt'> & { onMeter: (changes: Partial<PriceDraft>) => void }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const meters = useGet('/meters', { query: { limit: METERS_MAX, status: 'published' } });
  const items = meters.data?.items ?? [];
  return (
    <Term
      label={texts.meter}
      hint={
        <Link to="/env/$environment_id/meters/new" params={true as never}>
          {texts.newMeter}
        </Link>
      }
    >
      <Select
        aria-label={texts.meter}
        searchable
        placeholder={meters.data && items.length === 0 ? texts.noMeters : texts.chooseMeter}
        data={items.map(({ id, name, event_name }) => ({ value: id, label: `${name} (${event_name})` }))}
        value={draft.meter_id}
        onChange={(meter_id) => {
          const meter = items.find(({ id }) => id === meter_id);
          onMeter({ meter_id, ...(draft.display_name === '' && meter ? { display_name: meter.name } : {}) });
        }}
        error={errorAt('meter_id')}
      />
    </Term>
  );
}

function Term({ label, hint, children }: { label: string; hint?: ReactNode; children: ReactNode }): ReactNode {
  return (
    <div className={styles.term}>
      <div>
        {label} {hint !== undefined && <span className="label">{hint}</span>}
      </div>
      <div className={styles.termValue}>{children}</div>
    </div>
  );
}
