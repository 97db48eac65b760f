/** The request of a draft of a new subscription, and the term that the draft still lacks. */
import type { components } from '../../client/openapi.d.ts';
import { toMidnight } from '../../components/range.ts';
import { buildCharge, hasCharge } from '../plans/price-draft.ts';
import {
  type AddonDraft,
  type CommitmentDraft,
  listPhaseStarts,
  type PriceOverrideDrafts,
  type SubscriptionDraft,
} from './subscription-draft.ts';

export type CreateSubscriptionBody = components['schemas']['CreateSubscriptionRequest'];

/** The term that an incomplete draft lacks. `record` is customer, plan or currency. */
export type MissingTerm = 'record' | 'charge' | 'start' | 'phase_end' | 'addon' | 'payer' | 'sharing';

export function findMissing(draft: SubscriptionDraft): MissingTerm | null {
  const { customer_id, plan_id, currency, phases, addons, payer } = draft;
  if (customer_id === '' || plan_id === '' || currency === '') return 'record';
  if ([draft, ...phases].some(({ overrides }) => hasIncompleteCharge(overrides))) return 'charge';
  if (phases.length > 0 && draft.start_day === '') return 'start';
  if (phases.slice(0, -1).some(({ end_day }) => end_day === '')) return 'phase_end';
  if (addons.some(({ addon_id, quantity }) => addon_id === '' || quantity === '')) return 'addon';
  if (payer === 'other' && draft.payer_external_id === '') return 'payer';
  return payer === 'shared' && draft.sharing_external_ids.length === 0 ? 'sharing' : null;
}

function hasIncompleteCharge(overrides: PriceOverrideDrafts): boolean {
  return Object.values(overrides).some(({ charge }) => charge !== null && !hasCharge(charge));
}

/** Lists the ids of the prices with other terms, in the order of the request. */
export function listOverridden(overrides: PriceOverrideDrafts): string[] {
  return Object.keys(overrides).filter((price_id) => {
    const { quantity, amount, charge } = overrides[price_id]!;
    return quantity !== '' || amount !== '' || charge !== null;
  });
}

/** Lists the ids of the entitlements with other values, in the order of the request. */
export function listOverriddenEntitlements({ entitlements }: Pick<SubscriptionDraft, 'entitlements'>): string[] {
  return Object.keys(entitlements).filter((id) => Object.values(entitlements[id]!).some((value) => value !== ''));
}

/** Builds the request of a draft; null until the draft is complete. */
export function buildRequest(draft: SubscriptionDraft): CreateSubscriptionBody | null {
  if (findMissing(draft) !== null) return null;
  const request = {
    customer_id: draft.customer_id,
    plan_id: draft.plan_id,
    currency: draft.currency,
    billing_period: draft.billing_period,
    billing_cycle: draft.billing_cycle,
    ...pickSet({
      start_date: toStart(draft.start_day),
      end_date: toStart(draft.end_day),
      billing_anchor: draft.billing_cycle === 'anniversary' ? toStart(draft.anchor_day) : '',
      auto_invoice_threshold: draft.auto_invoice_threshold,
      payment_terms: draft.payment_terms,
    }),
    ...(draft.billing_period_count === '' ? {} : { billing_period_count: Number(draft.billing_period_count) }),
    ...(draft.trial_days === '' ? {} : { trial_period_days: Number(draft.trial_days) }),
    ...buildPriceTerms(draft),
    ...buildCommitments(draft),
    ...(draft.addons.length === 0 ? {} : { addons: draft.addons.map(buildAddon) }),
    ...buildEntitlements(draft),
    ...(draft.phases.length === 0 ? {} : { phases: buildPhases(draft) }),
    ...buildTaxes(draft),
    ...(draft.collection_method === 'send_invoice' ? { collection_method: draft.collection_method } : {}),
    ...buildPayer(draft),
    ...(draft.is_draft ? { subscription_status: 'draft' } : {}),
  };
  // The type wants numbers as bounds of tiers. The service also accepts decimal texts, which are exact.
  return request as CreateSubscriptionBody;
}

function toStart(day: string): string {
  return day === '' ? '' : toMidnight(day);
}

/** Picks the fields that have a value. */
function pickSet(fields: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}

function buildPriceTerms({ overrides, coupons }: Pick<SubscriptionDraft, 'overrides' | 'coupons'>) {
  const override_line_items = listOverridden(overrides).map((price_id) => {
    const { quantity, amount, charge } = overrides[price_id]!;
    const charged = charge === null ? pickSet({ amount }) : pickCharge(buildCharge(charge));
    return { price_id, ...pickSet({ quantity }), ...charged };
  });
  return {
    ...(override_line_items.length === 0 ? {} : { override_line_items }),
    ...(coupons.length === 0 ? {} : { coupons: [...coupons] }),
  };
}

/** Omits null fields, in place of which the service takes the terms of the plan. */
function pickCharge(charge: ReturnType<typeof buildCharge>) {
  return Object.fromEntries(Object.entries(charge).filter(([, value]) => value !== null));
}

function buildPhases(draft: SubscriptionDraft) {
  const starts = listPhaseStarts(draft);
  return draft.phases.map((phase, at) => ({
    ...pickSet({ start_date: toStart(starts[at]!), end_date: toStart(phase.end_day) }),
    ...buildPriceTerms(phase),
  }));
}

function buildAddon({ addon_id, quantity, cadence }: AddonDraft) {
  return { addon_id, quantity: Number(quantity), cadence };
}

function buildEntitlements(draft: SubscriptionDraft) {
  const override_entitlements = listOverriddenEntitlements(draft).map((entitlement_id) => {
    const { is_enabled, ...values } = draft.entitlements[entitlement_id]!;
    return { entitlement_id, ...pickSet(values), ...(is_enabled === '' ? {} : { is_enabled: is_enabled === 'true' }) };
  });
  return override_entitlements.length === 0 ? {} : { override_entitlements };
}

function buildTaxes({ tax_rate_codes, currency }: SubscriptionDraft) {
  if (tax_rate_codes.length === 0) return {};
  return { tax_rate_overrides: tax_rate_codes.map((tax_rate_code) => ({ tax_rate_code, currency })) };
}

function buildCommitments(draft: SubscriptionDraft) {
  const { commitment_amount, commitment_duration, overage_factor, enable_true_up, line_commitments } = draft;
  const lines = Object.entries(line_commitments).filter(([, { value }]) => value !== '');
  return {
    ...(commitment_amount === ''
      ? {}
      : { commitment_amount, enable_true_up, ...pickSet({ commitment_duration, overage_factor }) }),
    ...(lines.length === 0
      ? {}
      : {
          line_item_commitments: Object.fromEntries(
            lines.map(([price_id, line]) => [price_id, buildLineCommitment(line)]),
          ),
        }),
  };
}

function buildLineCommitment({ unit, value, overage_factor, enable_true_up }: CommitmentDraft) {
  const committed = unit === 'amount' ? { commitment_amount: value } : { commitment_quantity: value };
  return { ...committed, enable_true_up, ...pickSet({ overage_factor }) };
}

function buildPayer({ payer, payer_external_id, sharing_external_ids }: SubscriptionDraft) {
  if (payer === 'other') return { inheritance: { invoicing_customer_external_id: payer_external_id } };
  if (payer === 'shared')
    return { inheritance: { external_customer_ids_to_inherit_subscription: [...sharing_external_ids] } };
  return {};
}
