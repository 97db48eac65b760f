/** The draft of a new subscription in its form. Days begin at midnight UTC. An empty text means the term of the plan, or none. */
import type { PriceDraft } from '../plans/price-draft.ts';

export type DraftPeriod = 'MONTHLY' | 'ANNUAL' | 'WEEKLY' | 'DAILY' | 'QUARTERLY' | 'HALF_YEARLY';
export const BILLING_PERIODS: readonly DraftPeriod[] = [
  'MONTHLY',
  'QUARTERLY',
  'HALF_YEARLY',
  'ANNUAL',
  'WEEKLY',
  'DAILY',
];

export const PAYMENT_TERMS = ['15 NET', '30 NET', '45 NET', '60 NET', '75 NET', '90 NET'] as const;
export type PaymentTerms = (typeof PAYMENT_TERMS)[number];

/** Terms of one price that differ from the plan; an empty one does not differ. */
export type PriceOverrideDraft = {
  readonly quantity: string;
  readonly amount: string;
  /** Charge that replaces the one of the plan: model with amount, tiers or package; null for none. */
  readonly charge: PriceDraft | null;
};
export const NO_OVERRIDE: PriceOverrideDraft = { quantity: '', amount: '', charge: null };
export type PriceOverrideDrafts = Readonly<Record<string, PriceOverrideDraft>>;

/** The first phase begins with the subscription, each further phase at the end of the previous one. */
export type PhaseDraft = {
  readonly end_day: string;
  readonly overrides: PriceOverrideDrafts;
  readonly coupons: readonly string[];
};
export const EMPTY_PHASE: PhaseDraft = { end_day: '', overrides: {}, coupons: [] };

export type AddonDraft = {
  readonly addon_id: string;
  readonly quantity: string;
  readonly cadence: 'recurring' | 'onetime';
};
export const EMPTY_ADDON: AddonDraft = { addon_id: '', quantity: '1', cadence: 'recurring' };

/** Values of one entitlement of the plan that differ for this subscription; an empty one does not differ. */
export type EntitlementOverrideDraft = {
  readonly usage_limit: string;
  readonly is_enabled: '' | 'true' | 'false';
  readonly static_value: string;
};
export const NO_ENTITLEMENT_OVERRIDE: EntitlementOverrideDraft = { usage_limit: '', is_enabled: '', static_value: '' };

/** The commitment of the usage of one price. */
export type CommitmentDraft = {
  readonly unit: 'amount' | 'quantity';
  readonly value: string;
  readonly overage_factor: string;
  readonly enable_true_up: boolean;
};
export const NO_COMMITMENT: CommitmentDraft = { unit: 'amount', value: '', overage_factor: '', enable_true_up: false };

/** `self`: the customer pays; `other`: another customer pays; `shared`: several customers use the subscription as one. */
export type PayerChoice = 'self' | 'other' | 'shared';

export type SubscriptionDraft = {
  readonly customer_id: string;
  readonly plan_id: string;
  readonly currency: string;
  readonly billing_period: DraftPeriod;
  readonly billing_period_count: string;
  readonly billing_cycle: 'anniversary' | 'calendar';
  readonly anchor_day: string;
  /** Empty: the subscription starts now. */
  readonly start_day: string;
  readonly end_day: string;
  readonly trial_days: string;
  readonly overrides: PriceOverrideDrafts;
  readonly coupons: readonly string[];
  readonly commitment_amount: string;
  readonly commitment_duration: DraftPeriod | '';
  readonly overage_factor: string;
  readonly enable_true_up: boolean;
  /** Commitments by the id of the price. */
  readonly line_commitments: Readonly<Record<string, CommitmentDraft>>;
  readonly addons: readonly AddonDraft[];
  /** Overrides of entitlements, by the id of the entitlement. */
  readonly entitlements: Readonly<Record<string, EntitlementOverrideDraft>>;
  readonly phases: readonly PhaseDraft[];
  /** Codes of the tax rates that replace those of the paying customer; empty: the inherited ones. */
  readonly tax_rate_codes: readonly string[];
  readonly collection_method: 'charge_automatically' | 'send_invoice';
  readonly payment_terms: PaymentTerms | '';
  readonly auto_invoice_threshold: string;
  readonly payer: PayerChoice;
  readonly payer_external_id: string;
  readonly sharing_external_ids: readonly string[];
  readonly is_draft: boolean;
};

export const EMPTY_DRAFT: SubscriptionDraft = {
  customer_id: '',
  plan_id: '',
  currency: '',
  billing_period: 'MONTHLY',
  billing_period_count: '',
  billing_cycle: 'anniversary',
  anchor_day: '',
  start_day: '',
  end_day: '',
  trial_days: '',
  overrides: {},
  coupons: [],
  commitment_amount: '',
  commitment_duration: '',
  overage_factor: '',
  enable_true_up: false,
  line_commitments: {},
  addons: [],
  entitlements: {},
  phases: [],
  tax_rate_codes: [],
  collection_method: 'charge_automatically',
  payment_terms: '',
  auto_invoice_threshold: '',
  payer: 'self',
  payer_external_id: '',
  sharing_external_ids: [],
  is_draft: false,
};

type DraftPrice = { readonly currency: string; readonly billing_period: string };

/** Currencies of the prices of a plan, in the order of the plan. */
export function listCurrencies(prices: readonly DraftPrice[]): string[] {
  return [...new Set(prices.map(({ currency }) => currency))];
}

/** The period of the first recurring price, so that a monthly plan is billed by the month. */
function findPeriod(prices: readonly DraftPrice[]): DraftPeriod {
  const found = BILLING_PERIODS.find((period) => period === prices.find(isRecurring)?.billing_period);
  return found ?? 'MONTHLY';
}

function isRecurring({ billing_period }: DraftPrice): boolean {
  return billing_period !== 'ONETIME';
}

/** Drops all terms of single prices, because the draft gets other prices. */
function dropPriceTerms(draft: SubscriptionDraft): SubscriptionDraft {
  const phases = draft.phases.map((phase) => ({ ...phase, overrides: {} }));
  return { ...draft, overrides: {}, line_commitments: {}, phases };
}

/** Drops all terms of single prices and entitlements, because the draft gets another plan. */
function dropPlanTerms(draft: SubscriptionDraft): SubscriptionDraft {
  return { ...dropPriceTerms(draft), entitlements: {} };
}

export function chooseCurrency(draft: SubscriptionDraft, currency: string): SubscriptionDraft {
  return currency === draft.currency ? draft : { ...dropPriceTerms(draft), currency };
}

/** Changes the plan. A currency that the plan does not have is replaced. */
function choosePlan(
  draft: SubscriptionDraft,
  plan: { readonly id: string; readonly prices: readonly DraftPrice[] },
): SubscriptionDraft {
  const currencies = listCurrencies(plan.prices);
  return {
    ...dropPlanTerms(draft),
    plan_id: plan.id,
    currency: currencies.includes(draft.currency) ? draft.currency : (currencies[0] ?? ''),
    billing_period: findPeriod(plan.prices),
  };
}

/** The draft for the plan of the URL. It does not change until the prices of that plan are known. */
export function followPlan(
  draft: SubscriptionDraft,
  plan_id: string | undefined,
  plan: { readonly id: string; readonly prices: readonly DraftPrice[] | null } | undefined,
): SubscriptionDraft {
  if (plan_id === undefined) return draft.plan_id === '' ? draft : { ...dropPlanTerms(draft), plan_id: '' };
  if (plan?.id !== plan_id || draft.plan_id === plan_id) return draft;
  return choosePlan(draft, { id: plan_id, prices: plan.prices ?? [] });
}

/** Adds a phase without an end. Phases need a start day, which is `today` unless one is chosen. */
export function addPhase(draft: SubscriptionDraft, today: string): SubscriptionDraft {
  return { ...draft, start_day: draft.start_day || today, phases: [...draft.phases, EMPTY_PHASE] };
}

/** Lists the days on which the phases begin; empty if the previous phase has no end yet. */
export function listPhaseStarts({ start_day, phases }: Pick<SubscriptionDraft, 'start_day' | 'phases'>): string[] {
  return phases.map((_, at) => (at === 0 ? start_day : phases[at - 1]!.end_day));
}
