/** The terms of a price, one a row. A stored price shows the terms that stay; its name and key can change. */
import { Select, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { NumberInput } from '../../components/number-input.tsx';
import { Section } from '../../components/page.tsx';
import { useTexts } from '../../texts/texts.ts';
import { PERIODS, type PriceDraft, type PricePeriod } from './price-draft.ts';
import styles from './price-editor.module.css';
import { PRICE_TEXTS } from './price-texts.ts';

const CURRENCIES = ['usd', 'eur', 'gbp', 'chf', 'jpy', 'cad', 'aud', 'sek', 'nok', 'dkk', 'pln', 'inr', 'brl', 'kwd'];

type PriceTermsProps = {
  draft: PriceDraft;
  onDraft: (draft: PriceDraft) => void;
  isStored: boolean;
  isReadOnly: boolean;
  errorAt: (field: string) => ReactNode;
  runningCount: number;
};

export function PriceTerms({
  draft,
  onDraft,
  isStored,
  isReadOnly,
  errorAt,
  runningCount,
}: PriceTermsProps): ReactNode {
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
        {!isStored && <OpenTerms {...{ draft, errorAt, isFixed, isOnce, change }} />}
        <Term label={texts.starts} hint={texts.startsHint}>
          <TextInput
            type="datetime-local"
            aria-label={texts.starts}
            readOnly={isReadOnly}
            value={draft.starts_at.slice(0, 16)}
            onChange={({ currentTarget: { value } }) => change({ starts_at: value === '' ? '' : `${value}:00Z` })}
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
        <Term label={texts.appliesTo}>{runningCount > 0 ? texts.appliesAll(runningCount) : texts.appliesNew}</Term>
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
