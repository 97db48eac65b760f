/** The form of a new subscription: who and which plan, the terms, and the prices that differ. */
import { Checkbox, Select, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { Choice } from '../../components/choice.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import { PriceRate } from '../plans/price-rate.tsx';
import { NEW_TEXTS } from './new-texts.ts';
import { CustomerSelect, PlanSelect } from './record-selects.tsx';
import {
  BILLING_PERIODS,
  type BillingPeriod,
  listCurrencies,
  type PriceOverride,
  type SubscriptionDraft,
} from './subscription-draft.ts';
import styles from './subscriptions.module.css';

type FindError = (field: string) => string | undefined;
type DraftPartProps = {
  draft: SubscriptionDraft;
  prices: readonly PlanPrice[];
  findError: FindError;
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
            <button type="button" className={styles.linkish} onClick={onNewCustomer}>
              {texts.newCustomer}
            </button>
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
              onChange={(value) => value && set({ billing_period: value as BillingPeriod })}
            />
            <Select
              label={texts.currency}
              allowDeselect={false}
              value={draft.currency}
              data={listCurrencies(prices).map((value) => ({ value, label: value.toUpperCase() }))}
              error={findError('currency')}
              onChange={(value) => value && set({ currency: value })}
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

export function PricesPart({ draft, prices, findError, set }: DraftPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const shown = prices.filter(({ currency }) => currency === draft.currency);
  const change = (price_id: string, terms: Partial<PriceOverride>) =>
    set({
      overrides: {
        ...draft.overrides,
        [price_id]: { ...(draft.overrides[price_id] ?? { quantity: '', amount: '' }), ...terms },
      },
    });
  return (
    <>
      <Section title={texts.prices} hint={texts.pricesHint}>
        <Sheet>
          <div className={`${styles.override} ${styles.overrideHead}`} aria-hidden="true">
            <span>{texts.price}</span>
            <span>{texts.quantity}</span>
            <span>{texts.amount}</span>
          </div>
          {shown.map((price) => (
            <PriceOverrideRow
              key={price.id}
              price={price}
              terms={draft.overrides[price.id] ?? { quantity: '', amount: '' }}
              onChange={(terms) => change(price.id, terms)}
            />
          ))}
        </Sheet>
        {findError('override_line_items') && (
          <p role="alert" className={styles.error}>
            {findError('override_line_items')}
          </p>
        )}
      </Section>
      <MorePart draft={draft} findError={findError} set={set} />
    </>
  );
}

type PriceOverrideRowProps = {
  price: PlanPrice;
  terms: PriceOverride;
  onChange: (terms: Partial<PriceOverride>) => void;
};

function PriceOverrideRow({ price, terms, onChange }: PriceOverrideRowProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const language = useLanguage();
  const { display_name, type, billing_model, min_quantity, amount, price_unit } = price;
  const name = display_name ?? price.id;
  return (
    <div className={styles.override}>
      <span>
        <bdi>{name}</bdi>
        <br />
        <span className="label">
          <PriceRate price={price} />
        </span>
      </span>
      {type === 'FIXED' ? (
        <NumberInput
          aria-label={texts.quantityOf(name)}
          placeholder={formatQuantity(language, min_quantity ?? '1')}
          value={terms.quantity}
          onValue={(quantity) => onChange({ quantity })}
        />
      ) : (
        <span className="muted">{texts.byUsage}</span>
      )}
      {billing_model !== 'TIERED' && price_unit === null ? (
        <NumberInput
          aria-label={texts.amountOf(name)}
          placeholder={amount ? formatQuantity(language, amount) : ''}
          value={terms.amount}
          onValue={(next) => onChange({ amount: next })}
        />
      ) : (
        <span />
      )}
    </div>
  );
}

const COUPONS_MAX = 200;

function MorePart({ draft, findError, set }: Omit<DraftPartProps, 'prices'>): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const coupons = useGet('/coupons', { query: { limit: COUPONS_MAX } });
  const hasCommitment = draft.commitment_amount !== '';
  return (
    <Section title={texts.more}>
      <Sheet padded>
        <div className={styles.form}>
          <Select
            label={texts.coupon}
            placeholder={texts.noneChosen}
            searchable
            clearable
            value={draft.coupon === '' ? null : draft.coupon}
            data={(coupons.data?.items ?? []).map(({ id, name, coupon_code }) => ({
              value: id,
              label: coupon_code ? `${name} (${coupon_code})` : name,
            }))}
            nothingFoundMessage={texts.noCoupon}
            error={findError('coupons')}
            onChange={(coupon) => set({ coupon: coupon ?? '' })}
          />
          <div className={styles.pair}>
            <NumberInput
              label={texts.commitment}
              description={texts.commitmentHint}
              unit={draft.currency.toUpperCase()}
              value={draft.commitment_amount}
              error={findError('commitment_amount')}
              onValue={(commitment_amount) => set({ commitment_amount })}
            />
            {hasCommitment && (
              <NumberInput
                label={texts.overage}
                description={texts.overageHint}
                value={draft.overage_factor}
                error={findError('overage_factor')}
                onValue={(overage_factor) => set({ overage_factor })}
              />
            )}
          </div>
          {hasCommitment && (
            <Checkbox
              label={texts.trueUp}
              checked={draft.enable_true_up}
              onChange={({ currentTarget }) => set({ enable_true_up: currentTarget.checked })}
            />
          )}
          <Checkbox
            label={texts.draft}
            checked={draft.is_draft}
            onChange={({ currentTarget }) => set({ is_draft: currentTarget.checked })}
          />
        </div>
      </Sheet>
    </Section>
  );
}
