/**
 * Validates the commitments of a new subscription (docs/rules/commitments.md, "Possible commitments"): on lines of the plan, by price, or on
 * the subscription as a whole. Both together are refused, because the usage would be charged twice.
 */

import type { Price } from '../catalog/price/record.ts';
import { Decimal } from '../foundation/decimal.ts';
import { invalid } from '../foundation/error.ts';
import {
  hasCommitment,
  type LineItemCommitment,
  type RequestedCommitment,
  toRequestedCommitment,
} from '../rating/commitments/line-item-commitment.ts';
import { compareDuration } from '../rating/commitments/term.ts';
import type { PriceOverride } from './lines.ts';
import type { CreateSubscription } from './record.ts';

/** Requested line commitments by plan price. */
export function commitmentsByPrice(
  request: CreateSubscription,
  prices: readonly Price[],
): Map<string, RequestedCommitment> {
  checkOwnCommitment(request);
  const own = isCommitted(request);
  const byPrice = buildCommitments(request.line_item_commitments, { prices, seller: 'plan', own });
  if (own) checkOtherLines(request, prices);
  return byPrice;
}

type RequestedCommitmentsInput = {
  readonly prices: readonly Pick<Price, 'id'>[];
  readonly seller: 'plan' | 'add-on';
  /** Whether the subscription as a whole has a commitment. */
  readonly own: boolean;
};

/** Requested line commitments by price of the plan or add-on. */
export function buildCommitments(
  requested: Readonly<Record<string, LineItemCommitment>> | null,
  { prices, seller, own }: RequestedCommitmentsInput,
): Map<string, RequestedCommitment> {
  const byPrice = new Map<string, RequestedCommitment>();
  for (const [price_id, config] of Object.entries(requested ?? {})) {
    const field = `line_item_commitments.${price_id}`;
    if (!prices.some(({ id }) => id === price_id))
      throw invalid(field, `${price_id} is not a price of this ${seller} and currency`);
    const commitment = toRequestedCommitment(config);
    if (own && hasCommitment(commitment)) throw invalid(field, BOTH);
    byPrice.set(price_id, commitment);
  }
  return byPrice;
}

const BOTH = 'cannot be combined with commitment_amount of the subscription';

function checkOtherLines(request: CreateSubscription, prices: readonly Price[]): void {
  checkUncommitted(request);
  for (const [index, phase] of (request.phases ?? []).entries()) checkUncommitted(phase, `phases[${index}].`);
  checkUntimed(prices, 'commitment_amount');
}

/**
 * Throws if a price has times of day. The subscription has a commitment as a whole, and times of day would commit each line of the price,
 * too.
 */
export function checkUntimed(
  prices: readonly Pick<Price, 'id' | 'commitment_time_buckets'>[],
  field: 'commitment_amount' | 'addon_id' | 'price' | 'price_id',
): void {
  const timed = prices.find(({ commitment_time_buckets }) => commitment_time_buckets?.length);
  if (!timed) return;
  const other = field === 'commitment_amount' ? '' : ', and the subscription has a commitment_amount';
  throw invalid(field, `cannot be combined with the times of day of price ${timed.id}${other}`);
}

function checkUncommitted(
  { line_items, override_line_items }: Pick<CreateSubscription, 'line_items' | 'override_line_items'>,
  prefix = '',
): void {
  for (const [index, line] of (line_items ?? []).entries())
    if (hasCommitment(line)) throw invalid(`${prefix}line_items[${index}].commitment_amount`, BOTH);
  for (const [index, override] of (override_line_items ?? []).entries())
    if (override.commitment_time_buckets?.length)
      throw invalid(`${prefix}override_line_items[${index}].commitment_time_buckets`, BOTH);
}

/** Throws if an added line has a commitment and the subscription as a whole has one, too. */
export function checkOneLevel(
  subscription: { readonly commitment_amount?: string | null | undefined },
  line: RequestedCommitment,
): void {
  if (isCommitted(subscription) && hasCommitment(line)) throw invalid('commitment_amount', BOTH);
}

/** Whether the subscription as a whole has a commitment. */
export function isCommitted({
  commitment_amount,
}: {
  readonly commitment_amount?: string | null | undefined;
}): boolean {
  return Boolean(commitment_amount) && !new Decimal(commitment_amount!).isZero();
}

/** Commitment fields as stored on the subscription. */
export function ownCommitment(request: CreateSubscription) {
  const { commitment_amount, commitment_duration, overage_factor, enable_true_up } = request;
  if (!isCommitted(request))
    return { commitment_amount: null, commitment_duration: null, overage_factor: null, enable_true_up: false };
  return {
    commitment_amount,
    commitment_duration,
    overage_factor: overage_factor ?? '1',
    enable_true_up: enable_true_up ?? false,
  };
}

function checkOwnCommitment(request: CreateSubscription): void {
  const { commitment_amount: amount, commitment_duration, overage_factor, enable_true_up } = request;
  if (amount !== null && new Decimal(amount).isNegative()) throw invalid('commitment_amount', 'must not be negative');
  if (overage_factor !== null && new Decimal(overage_factor).lt(1))
    throw invalid('overage_factor', 'must be at least 1');
  if (!isCommitted(request)) {
    if (enable_true_up) throw invalid('enable_true_up', 'needs a commitment_amount');
    if (commitment_duration !== null) throw invalid('commitment_duration', 'needs a commitment_amount');
    if (overage_factor !== null && !new Decimal(overage_factor).eq(1))
      throw invalid('overage_factor', 'needs a commitment_amount');
  }
  const { billing_period, billing_period_count } = request;
  const length = { billing_period, billing_period_count: billing_period_count ?? 1 };
  if (commitment_duration !== null && compareDuration(commitment_duration, length) < 0)
    throw invalid('commitment_duration', 'must not be shorter than the billing period');
}

/** Adds the times of day of the requested line commitments to the price overrides, because they are stored on the price. */
export function withTimeBuckets(
  overrides: ReadonlyMap<string, PriceOverride>,
  commitments: ReadonlyMap<string, RequestedCommitment>,
): Map<string, PriceOverride> {
  const all = new Map(overrides);
  for (const [price_id, { commitment_time_buckets }] of commitments) {
    if (!commitment_time_buckets?.length) continue;
    if (all.get(price_id)?.commitment_time_buckets?.length)
      throw invalid(`line_item_commitments.${price_id}.commitment_time_buckets`, 'are overridden already');
    all.set(price_id, { ...all.get(price_id), price_id, commitment_time_buckets });
  }
  return all;
}
