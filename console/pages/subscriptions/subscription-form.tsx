/** The form of a new subscription: who and which plan, the terms, and the prices that differ. */
import { Select, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { Choice } from '../../components/choice.tsx';
import { findUnshownError } from '../../components/field-errors.ts';
import { NumberInput } from '../../components/number-input.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { TextButton } from '../../components/text-button.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import { NEW_TEXTS } from './new-texts.ts';
import { PriceOverrides } from './price-overrides.tsx';
import { CustomerSelect, PlanSelect } from './record-selects.tsx';
import {
  BILLING_PERIODS,
  chooseCurrency,
  type DraftPeriod,
  listCurrencies,
  type SubscriptionDraft,
} from './subscription-draft.ts';
import styles from './subscriptions.module.css';

type FindError = (field: string) => ReactNode;
export type DraftPartProps = {
  draft: SubscriptionDraft;
  prices: readonly PlanPrice[];
  /** Finds the message for a field of the request, or for a field below it. */
  findError: FindError;
  /** Error of the creation, or else of the preview. */
  error: Error | null;
  set: (change: Partial<SubscriptionDraft>) => void;
};

type WhoPartProps = {
  draft: SubscriptionDraft;
  plan_id: string | undefined;
  isEmptyPlan: boolean;
  findError: FindError;
  onCustomer: (id: string | undefined) => void;
  onNewCustomer: () => void;
  onPlan: (id: string | undefined) => void;
};

export function WhoPart(props: WhoPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const { draft, plan_id, isEmptyPlan, findError, onCustomer, onNewCustomer, onPlan } = props;
  return (
    <Section title={texts.who}>
      <Sheet padded>
        <div className={styles.pair}>
          <div>
            <CustomerSelect
              label={texts.customer}
              required
              value={draft.customer_id === '' ? undefined : draft.customer_id}
              onValue={onCustomer}
              error={findError('customer_id')}
            />
            <TextButton onClick={onNewCustomer}>{texts.newCustomer}</TextButton>
          </div>
          <PlanSelect
            label={texts.plan}
            required
            value={plan_id}
            onValue={onPlan}
            error={findError('plan_id') ?? (isEmptyPlan ? texts.noPrices : undefined)}
          />
        </div>
      </Sheet>
    </Section>
  );
}

export function TermsPart({ draft, prices, findError, set }: DraftPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  return (
    <Section title={texts.terms}>
      <Sheet padded>
        <div className={styles.form}>
          <div className={styles.pair}>
            <TextInput
              type="date"
              label={texts.start}
              description={texts.startHint}
              required={draft.phases.length > 0}
              value={draft.start_day}
              error={findError('start_date')}
              onChange={({ currentTarget }) => set({ start_day: currentTarget.value })}
            />
            <NumberInput
              label={texts.trial}
              description={texts.trialHint}
              value={draft.trial_days}
              error={findError('trial_period_days')}
              onValue={(trial_days) => set({ trial_days })}
            />
            <Select
              label={texts.billing}
              allowDeselect={false}
              value={draft.billing_period}
              data={BILLING_PERIODS.map((value) => ({ value, label: texts.periodName(value) }))}
              error={findError('billing_period')}
              onChange={(value) => value && set({ billing_period: value as DraftPeriod })}
            />
            <Select
              label={texts.currency}
              allowDeselect={false}
              value={draft.currency}
              data={listCurrencies(prices).map((value) => ({ value, label: value.toUpperCase() }))}
              error={findError('currency')}
              onChange={(value) => value && set(chooseCurrency(draft, value))}
            />
          </div>
          <div>
            <p className={styles.label}>{texts.cycle}</p>
            <Choice
              label={texts.cycle}
              value={draft.billing_cycle}
              onValue={(billing_cycle) => set({ billing_cycle })}
              options={[
                { value: 'anniversary', label: texts.anniversary },
                { value: 'calendar', label: texts.calendar },
              ]}
            />
            {findError('billing_cycle') && <p className={styles.error}>{findError('billing_cycle')}</p>}
          </div>
        </div>
      </Sheet>
    </Section>
  );
}

export function PricesPart({ draft, prices, error, set }: DraftPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const rest = findUnshownError(error, 'override_line_items', /^\[/);
  return (
    <Section title={texts.prices} hint={texts.pricesHint}>
      <PriceOverrides
        prices={prices.filter(({ currency }) => currency === draft.currency)}
        overrides={draft.overrides}
        error={error}
        onOverrides={(overrides) => set({ overrides })}
      />
      {rest !== undefined && (
        <p role="alert" className={styles.error}>
          {rest}
        </p>
      )}
    </Section>
  );
}
