/**
 * Builds line items from prices. A new subscription takes the prices of its plan over (docs/rules/subscriptions.md,
 * "What is taken over from the plan"), each with a quantity (docs/rules/subscriptions.md, "Quantities"). An override is
 * a price of the subscription's own, which replaces the price of the plan. It changes the amount, not when it is billed
 * or which events count (docs/rules/subscriptions.md, "Overrides").
 */

import { defaultQuantity } from '../catalog/price/quantity.ts';
import {
  checkPrice,
  type Price,
  type PriceDefinition,
  type RequestedCharge,
  replaceCharge,
} from '../catalog/price/record.ts';
import { planSuccessor } from '../catalog/price/successor.ts';
import { Decimal } from '../foundation/decimal.ts';
import { invalid, prefixField } from '../foundation/error.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { leastDays } from '../foundation/time/period.ts';
import { emptyCommitment, type StoredCommitment } from '../rating/commitments/line-item-commitment.ts';
import { computeLineEnd, type LineItemEnd } from './line-end.ts';
import { toLineCharge } from './line-price.ts';
import type { Subscription, SubscriptionLineItem } from './record.ts';

export type LineItemTerms = Omit<
  SubscriptionLineItem,
  | 'id'
  | 'subscription_id'
  | 'customer_id'
  | 'tenant_id'
  | 'environment_id'
  | 'status'
  | 'created_at'
  | 'updated_at'
  | 'created_by'
  | 'updated_by'
> &
  Pick<LineItemEnd, 'ends_with_price'>;

/** Changes of one plan price for this subscription only. */
export type PriceOverride = RequestedCharge &
  Partial<Pick<Price, 'price_unit_amount' | 'price_unit_tiers' | 'commitment_time_buckets'>> & {
    price_id: string;
    quantity?: string | null;
    /** Path of the override in the request; errors name it. */
    field?: string;
  };

export type LineItemInput = {
  price: Price;
  subscription: Pick<Subscription, 'start_date' | 'end_date' | 'billing_period' | 'billing_period_count'>;
  now: Milliseconds;
  entity: LineItemEntity;
  meter_name: string | null;
  quantity?: string | null;
  /** Path in the request of the object with the quantity; errors name it. */
  field?: string | undefined;
  /** Result of `toStoredCommitment`. Default: the commitment of the price's times of day, or none. */
  commitment?: StoredCommitment;
  /** Fields that the request sets on an extra line. */
  requested?: RequestedLineFields;
};
type LineItemEntity = { entity_id: string; entity_type: 'plan' | 'addon' | 'subscription'; name: string | null };
type RequestedLineFields = { display_name: string | null; metadata: LineItemMetadata } & Partial<LineDates>;
type LineDates = { start_date: string | null; end_date: string | null };
type LineItemMetadata = SubscriptionLineItem['metadata'];

/** Prices that a subscription in this currency starts with: published and not expired. At least one is required. */
export function selectPricesToCopy(
  prices: readonly Price[],
  currency: string,
  terms: { start: Milliseconds; end: Milliseconds | null; now: Milliseconds },
  seller = 'the plan',
): Price[] {
  const from = Math.max(terms.start, terms.now);
  const chosen = prices.filter(
    (price) =>
      price.status === 'published' &&
      price.currency === currency &&
      (!price.end_date || toInstant(price.end_date) > from) &&
      (!price.start_date || terms.end === null || toInstant(price.start_date) < Math.max(terms.end, terms.now + 1)),
  );
  if (chosen.length === 0) throw invalid('currency', `${seller} has no price in ${currency}`);
  return chosen;
}

export function buildLineItem(input: LineItemInput): LineItemTerms {
  const { price, entity, meter_name, requested } = input;
  checkPeriods(price, input.subscription);
  return {
    ...computeLineInterval(input),
    entity_id: entity.entity_id,
    entity_type: entity.entity_type,
    plan_display_name: entity.name,
    price_id: price.id,
    price_type: price.type,
    meter_id: price.meter_id,
    meter_display_name: meter_name,
    price_unit_id: price.price_unit_id,
    price_unit: price.price_unit,
    display_name: requested?.display_name || price.display_name || entity.name || meter_name,
    quantity: parseLineQuantity(input),
    currency: price.currency,
    billing_period: price.billing_period,
    billing_period_count: price.billing_period_count,
    invoice_cadence: price.invoice_cadence,
    subscription_phase_id: null,
    addon_association_id: null,
    trial_period_days: price.trial_period_days,
    ...(input.commitment ?? emptyCommitment(price)),
    metadata: requested?.metadata ?? null,
  };
}

/**
 * Maximum number of periods of a line in one period of the subscription, because each becomes a charge. A daily line in a period of two
 * years is within the limit.
 */
const LINE_PERIODS_MAX = 1_000;

function checkPeriods(price: Price, subscription: LineItemInput['subscription']): void {
  if (price.billing_period === 'ONETIME') return;
  const own = leastDays(price.billing_period) * price.billing_period_count;
  const whole = leastDays(subscription.billing_period) * subscription.billing_period_count;
  if (whole / own <= LINE_PERIODS_MAX) return;
  throw invalid(
    'billing_period_count',
    `one billing period of the subscription is made of more than ${LINE_PERIODS_MAX} of price ${price.id}`,
    { price_id: price.id, periods_max: LINE_PERIODS_MAX },
  );
}

/** Returns the entity of an extra line: the plan, add-on or subscription that owns its price. */
export function toLineEntity(price: Price, plan: { id: string; name: string }): LineItemEntity {
  const entity_id = price.entity_id ?? '';
  if (price.entity_type === 'PLAN')
    return { entity_id, entity_type: 'plan', name: entity_id === plan.id ? plan.name : null };
  return { entity_id, entity_type: price.entity_type === 'ADDON' ? 'addon' : 'subscription', name: null };
}

/** Overrides by price id. Each override names a price of the plan once and changes something. */
export function groupOverridesByPrice(
  overrides: readonly PriceOverride[],
  prices: readonly Price[],
  prefix = '',
): Map<string, PriceOverride> {
  const byPrice = new Map<string, PriceOverride>();
  for (const [index, override] of overrides.entries()) {
    const field = `${prefix}override_line_items[${index}]`;
    const price = prices.find((candidate) => candidate.id === override.price_id);
    if (!price) throw invalid(`${field}.price_id`, `${override.price_id} is not a price of this plan and currency`);
    if (byPrice.has(price.id)) throw invalid(`${field}.price_id`, 'is overridden twice');
    if (isUnset(override.quantity) && !hasPriceChange(override)) throw invalid(field, 'changes nothing');
    if (price.type === 'USAGE' && !isUnset(override.quantity)) {
      throw invalid(`${field}.quantity`, 'is measured for a usage price and cannot be given');
    }
    byPrice.set(price.id, { ...override, field });
  }
  return byPrice;
}

/** Whether an override changes the price. An override of the quantity alone is stored on the line item and needs no price of its own. */
export function hasPriceChange(override: PriceOverride): boolean {
  return Object.keys(toLineCharge(override)).length > 0;
}

/** Subscription that owns the override. `symbol` is that of the price unit, if the plan price has one. */
type OverrideTarget = { readonly id: string; readonly start_date: string; readonly symbol?: string };

/** Builds the subscription's own price: the plan price with the changes of the override, validated like every price. */
export function buildOverriddenPrice(
  planPrice: Price,
  override: PriceOverride,
  subscription: OverrideTarget,
): PriceDefinition {
  try {
    const price: PriceDefinition = {
      ...applyOverride(planPrice, override, subscription),
      commitment_time_buckets: override.commitment_time_buckets ?? planPrice.commitment_time_buckets,
      entity_type: 'SUBSCRIPTION',
      entity_id: subscription.id,
      lookup_key: null,
      parent_price_id: planPrice.parent_price_id || planPrice.id,
    };
    checkPrice(price);
    return price;
  } catch (error) {
    throw override.field === undefined ? error : prefixField(error, override.field);
  }
}

/**
 * Amounts in a price unit are converted to money at the rate of the plan price. A plan price in a price unit refuses an override in money.
 */
function applyOverride(
  planPrice: Price,
  override: PriceOverride,
  { start_date, symbol }: OverrideTarget,
): PriceDefinition {
  const { id, tenant_id, environment_id, status, created_at, updated_at, created_by, updated_by, sequence, ...fields } =
    planPrice;
  const charge = toLineCharge(override);
  const isInUnit =
    planPrice.price_unit_type === 'CUSTOM' || 'price_unit_amount' in charge || 'price_unit_tiers' in charge;
  if (!isInUnit) return replaceCharge(fields, override);
  const { end_date } = planPrice;
  const sold = planPrice.start_date ?? start_date;
  return { ...planSuccessor(planPrice, charge, { start_date: sold, symbol }), end_date };
}

/**
 * A price that starts in the future delays the start of its line. A price that has started already applies from the start of the line, even
 * if that is earlier.
 */
function computeLineInterval({
  price,
  subscription,
  now,
  requested,
}: LineItemInput): LineItemEnd & Pick<LineItemTerms, 'start_date'> {
  checkInside({ start_date: requested?.start_date ?? null, end_date: requested?.end_date ?? null }, subscription);
  const start = toInstant(requested?.start_date ?? subscription.start_date);
  const priceStart = price.start_date ? toInstant(price.start_date) : start;
  return {
    start_date: formatMs(priceStart > now ? Math.max(priceStart, start) : start),
    ...computeLineEnd(price, [subscription.end_date, requested?.end_date]),
  };
}

function checkInside(line: LineDates, subscription: LineItemInput['subscription']): void {
  const start = toInstant(line.start_date ?? subscription.start_date);
  const end = line.end_date ? toInstant(line.end_date) : null;
  const last = subscription.end_date ? toInstant(subscription.end_date) : Number.POSITIVE_INFINITY;
  if (start < toInstant(subscription.start_date) || start > last) {
    throw invalid('line_items.start_date', 'must lie inside the subscription');
  }
  if (end !== null && (end <= start || end > last)) {
    throw invalid('line_items.end_date', 'must be after start_date and not after the end of the subscription');
  }
}

function parseLineQuantity({ price, quantity: given, field: path }: LineItemInput): string {
  const field = path === undefined ? 'quantity' : `${path}.quantity`;
  if (price.type === 'USAGE') return '0';
  if (isUnset(given) || new Decimal(given).isZero()) return defaultQuantity(price);
  const quantity = new Decimal(given);
  if (quantity.isNegative()) throw invalid(field, 'must not be negative');
  if (price.min_quantity && quantity.lt(price.min_quantity)) {
    throw invalid(field, `is below the min_quantity ${price.min_quantity} of price ${price.id}`);
  }
  return quantity.toFixed();
}

function isUnset<Value>(value: Value): value is Extract<Value, null | undefined> {
  return value === null || value === undefined;
}
