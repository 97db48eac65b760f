/** The form of a new subscription, and the request that it makes. */
import type { components } from '../../client/openapi.d.ts';

export type BillingPeriod = 'MONTHLY' | 'ANNUAL' | 'WEEKLY' | 'DAILY' | 'QUARTERLY' | 'HALF_YEARLY';
export const BILLING_PERIODS: readonly BillingPeriod[] = [
  'MONTHLY',
  'QUARTERLY',
  'HALF_YEARLY',
  'ANNUAL',
  'WEEKLY',
  'DAILY',
];

/** Terms of one price of the plan that differ on this subscription; empty means as in the plan. */
export type PriceOverride = { readonly quantity: string; readonly amount: string };

export type SubscriptionDraft = {
  readonly customer_id: string;
  readonly plan_id: string;
  readonly currency: string;
  readonly billing_period: BillingPeriod;
  readonly billing_cycle: 'anniversary' | 'calendar';
  /** A day; empty for now. */
  readonly start_day: string;
  readonly trial_days: string;
  readonly overrides: Readonly<Record<string, PriceOverride>>;
  readonly coupon: string;
  readonly commitment_amount: string;
  readonly overage_factor: string;
  readonly enable_true_up: boolean;
  readonly is_draft: boolean;
};

export const EMPTY_DRAFT: SubscriptionDraft = {
  customer_id: '',
  plan_id: '',
  currency: '',
  billing_period: 'MONTHLY',
  billing_cycle: 'anniversary',
  start_day: '',
  trial_days: '',
  overrides: {},
  coupon: '',
  commitment_amount: '',
  overage_factor: '',
  enable_true_up: false,
  is_draft: false,
};

type DraftPrice = { readonly currency: string; readonly billing_period: string };

/** Currencies of the prices of a plan, in the order of the plan. */
export function listCurrencies(prices: readonly DraftPrice[]): string[] {
  return [...new Set(prices.map(({ currency }) => currency))];
}

/** The period of the first recurring price, so that a monthly plan is billed by the month. */
function findPeriod(prices: readonly DraftPrice[]): BillingPeriod {
  const found = BILLING_PERIODS.find((period) => period === prices.find(isRecurring)?.billing_period);
  return found ?? 'MONTHLY';
}

function isRecurring({ billing_period }: DraftPrice): boolean {
  return billing_period !== 'ONETIME';
}

/** The draft with another plan. A currency that the plan does not have is replaced, and overrides of other prices are dropped. */
function choosePlan(
  draft: SubscriptionDraft,
  plan: { readonly id: string; readonly prices: readonly DraftPrice[] },
): SubscriptionDraft {
  const currencies = listCurrencies(plan.prices);
  return {
    ...draft,
    plan_id: plan.id,
    currency: currencies.includes(draft.currency) ? draft.currency : (currencies[0] ?? ''),
    billing_period: findPeriod(plan.prices),
    overrides: {},
  };
}

/** The draft for the plan of the URL. It does not change until the prices of that plan are known. */
export function followPlan(
  draft: SubscriptionDraft,
  plan_id: string | undefined,
  plan: { readonly id: string; readonly prices: readonly DraftPrice[] | null } | undefined,
): SubscriptionDraft {
  if (plan_id === undefined) return draft.plan_id === '' ? draft : { ...draft, plan_id: '', overrides: {} };
  if (plan?.id !== plan_id || draft.plan_id === plan_id) return draft;
  return choosePlan(draft, { id: plan_id, prices: plan.prices ?? [] });
}

export type CreateSubscriptionBody = components['schemas']['CreateSubscriptionRequest'];

/** The request of a draft; null until customer, plan and currency are known. */
export function buildRequest(draft: SubscriptionDraft): CreateSubscriptionBody | null {
  if (draft.customer_id === '' || draft.plan_id === '' || draft.currency === '') return null;
  const overrides = Object.entries(draft.overrides)
    .filter(([, { quantity, amount }]) => quantity !== '' || amount !== '')
    .map(([price_id, { quantity, amount }]) => ({
      price_id,
      ...(quantity === '' ? {} : { quantity }),
      ...(amount === '' ? {} : { amount }),
    }));
  return {
    customer_id: draft.customer_id,
    plan_id: draft.plan_id,
    currency: draft.currency,
    billing_period: draft.billing_period,
    billing_cycle: draft.billing_cycle,
    ...(draft.start_day === '' ? {} : { start_date: `${draft.start_day}T00:00:00Z` }),
    ...(draft.trial_days === '' ? {} : { trial_period_days: Number(draft.trial_days) }),
    ...(overrides.length === 0 ? {} : { override_line_items: overrides }),
    ...(draft.coupon === '' ? {} : { coupons: [draft.coupon] }),
    ...(draft.commitment_amount === ''
      ? {}
      : {
          commitment_amount: draft.commitment_amount,
          enable_true_up: draft.enable_true_up,
          ...(draft.overage_factor === '' ? {} : { overage_factor: draft.overage_factor }),
        }),
    ...(draft.is_draft ? { subscription_status: 'draft' } : {}),
  };
}
