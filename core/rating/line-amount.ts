/**
 * Computes the amount of one line and records its inputs (docs/rules/invoices.md, "What a line was computed from"). It is rounded here and
 * nowhere earlier (docs/rules/numbers.md, "Each line first, then the sum"). A measurement below zero is recorded, and billed as 0
 * (docs/rules/pricing.md, "Never below zero"). Fixed charges are prorated by the computed charge, usage never is (docs/rules/proration.md,
 * "The computed charge is prorated").
 */

import { CHARGED_FIELDS } from '../catalog/price/record.ts';
import { addParts } from '../catalog/pricing/add-parts.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../catalog/pricing/charge.ts';
import type { ChargePart } from '../catalog/pricing/terms.ts';
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { FarthingError } from '../foundation/error.ts';
import { groupBy } from '../foundation/group-by.ts';
import { MAX_FRACTION_DIGITS, roundMoney } from '../foundation/money.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import {
  type Allowance,
  applyAllowances,
  type BillableUsage,
  computeAmountAbove,
  type MeasuredAllowance,
} from './allowances/allowance.ts';
import { formatAllowanceParts, formatAllowances } from './allowances/allowances-text.ts';
import type { UsageInterval } from './allowances/independent-limits.ts';
import { applyMoneyGrants, type LineCost } from './chains/chain-costs.ts';
import { type ChainedLine, chainedAmount, chainText } from './chains/chained-line.ts';
import type { BilledItem } from './charges.ts';
import { type CommitmentInfo, commitmentInfo } from './commitments/info.ts';
import {
  type CommitmentPart,
  committedAmount,
  committedCharge,
  type LineCommitment,
  WHOLE_COMMITMENT,
} from './commitments/line.ts';
import type { CommittedLines } from './commitments/part.ts';
import type { CommittedCharge } from './commitments/pool.ts';
import { roundParts } from './commitments/rounded.ts';
import { type WindowedCharge, windowedCharge } from './commitments/windowed.ts';
import type { ComputedFrom, CountedScope } from './computed-from.ts';
import type { BilledTotal, LineAdjustments } from './credit-adjustments.ts';
import { isWhole, type ProrationShare, prorate, roundedShare, shareText } from './proration.ts';
import type { LineQuantities } from './quantity-fields.ts';

export type PricedItem = BilledItem & {
  readonly price: PriceTerms;
  /** Units of a fixed price; the units of a usage price are measured. */
  readonly quantity: Decimal;
  readonly display_name: string;
  readonly meter_id: string | null;
  /** Commitment of the line; usage prices only. */
  readonly commitment?: LineCommitment | null;
  /** Consecutive lines that have the same commitment as this line. */
  readonly committed_lines?: CommittedLines | null;
  /** Free units that entitlements grant on the line's meter: unlimited, or a limit for each reset period. */
  readonly allowances?: readonly Allowance[];
};

/** Measurement of a usage charge in the charge's window. */
export type MeasuredUsage = {
  readonly quantity: Decimal;
  readonly event_count: number;
  readonly buckets: readonly (readonly Decimal[])[] | null;
  readonly bucket_starts?: readonly Milliseconds[] | null;
  /** Measured allowances, one for each of the item's `allowances`. */
  readonly allowances?: readonly MeasuredAllowance[];
  /** Usage in each interval between the bounds of several allowances, if they cut the charge. */
  readonly parts?: readonly UsageInterval[];
  /** Set for a level (WEIGHTED_SUM): units × microseconds in the time of the line, exact. */
  readonly integral?: Decimal | undefined;
  readonly as_of: string;
  readonly high_water: Readonly<Record<string, string>>;
  /** Version of the meter definition that counted. */
  readonly meter_version: number;
  /** Customers whose events were counted. */
  readonly counted?: CountedScope;
};

export type LineAmount = LineQuantities & {
  readonly quantity: Decimal;
  readonly amount: Decimal;
  /** Amount before it was rounded; absent for a line that is a difference of rounded amounts. */
  readonly exact?: Decimal;
  readonly computed_from: ComputedFrom;
  readonly commitment_info?: CommitmentInfo | null;
  /** The parts of a committed charge before they are rounded. */
  readonly exact_parts?: CommittedCharge | undefined;
};

export type PlannedLine<Item extends PricedItem = PricedItem> = LineAmount & {
  readonly item: Item;
  readonly service: Period;
  readonly display_name: string;
  /** The invoice line that this one corrects; null for an original charge. */
  readonly parent_line_item_id: string | null;
  /** Overage above the subscription's commitment: a separate line next to the item's charge. */
  readonly is_overage?: boolean;
  /**
   * Whether this is the true-up of the subscription's commitment, which belongs to no item; `item` is then meaningless.
   */
  readonly is_true_up?: boolean;
  /** Amount of progressive billing that exceeds the charge of the whole period. */
  readonly overbilled?: { readonly amount: Decimal; readonly quantity: Decimal; readonly billed: BilledTotal };
  /** Set for a credit line: the discounts and the tax credited with it. */
  readonly credit_adjustments?: LineAdjustments;
};

/** Prices a fixed charge, in advance or in arrears: the charge for the quantity, times the paid share of the period. */
export function priceFixedCharge(
  item: Pick<PricedItem, 'price' | 'quantity'>,
  share: ProrationShare,
  currency: string,
): LineAmount {
  const parts = chargeParts(item.price, item.quantity);
  const charge = sumDecimals(parts.map((part) => part.amount));
  return {
    quantity: item.quantity,
    amount: roundedShare(charge, share, currency),
    exact: prorate(charge, share),
    computed_from: {
      price: priceSnapshot(item.price),
      quantity: item.quantity.toFixed(),
      breakdown: parts.map(partText),
      proration: shareText(share),
      ...(isWhole(share) ? {} : { share: { before_ms: 0, ...share } }),
    },
  };
}

/**
 * Prices a usage charge. Usage is never prorated, because its window is its interval of service. Free units of
 * entitlements are subtracted first; the price applies to the rest, and the line's commitment to the cost of that rest.
 */
export function priceUsageCharge(
  item: PricedItem,
  window: Period,
  {
    measured,
    currency,
    part = WHOLE_COMMITMENT,
    chained,
  }: {
    measured: MeasuredUsage;
    currency: string;
    part?: CommitmentPart | undefined;
    /** The line's chain (docs/rules/proration.md, "Usage over a change") and the line's cost in it; absent if it is in no chain. */
    chained?: ChainedLine | undefined;
  },
): LineAmount {
  const allowed = { ...measured, ...applyAllowances(measured) };
  const pricing = { measured: allowed, currency, part };
  const cost = chained?.cost;
  const computed = cost ? priceInChain(item, cost, pricing) : priceUsage(item, window, pricing);
  const { base, breakdown, charge, commitment_info, window_terms, of_term, ...rest } = computed;
  return {
    quantity: cost ? cost.quantity.toDecimalPlaces(MAX_FRACTION_DIGITS) : shownQuantity(allowed.quantity),
    amount: chained ? chainedAmount(chained, charge, currency) : (rest.amount ?? roundMoney(charge, currency)),
    exact: charge,
    commitment_info,
    exact_parts: rest.exact_parts,
    adjusted_entitlement_quantity: cost ? cost.free : allowed.free,
    computed_from: {
      price: priceSnapshot(item.price),
      meter_id: item.meter_id,
      meter_version: String(measured.meter_version),
      window_start: formatMs(window.start),
      window_end: formatMs(window.end),
      quantity: measured.quantity.toFixed(),
      event_count: measured.event_count,
      high_water: { ...measured.high_water },
      as_of: measured.as_of,
      ...(measured.counted ? { counted: measured.counted } : {}),
      breakdown,
      ...(commitment_info === null ? {} : { base_amount: base.toFixed() }),
      ...(window_terms ? { window_terms } : {}),
      ...(of_term ? { of_term } : {}),
      ...(measured.allowances?.length ? { allowances: formatAllowances(measured.allowances) } : {}),
      ...(measured.parts?.length ? { allowance_parts: formatAllowanceParts(measured.parts) } : {}),
      ...(chained ? { chain: chainText(chained) } : {}),
    },
  };
}

type LinePricing = {
  /** Cost before the commitment is applied. */
  base: Decimal;
  charge: Decimal;
  /** Set for a line whose commitment has a term of several periods: the amount that the line adds to the rounded charge of the term. */
  amount?: Decimal;
  breakdown: Record<string, unknown>[];
  commitment_info: CommitmentInfo | null;
  exact_parts?: CommittedCharge;
  window_terms?: ComputedFrom['window_terms'];
  of_term?: ComputedFrom['of_term'];
};
type PricedUsage = MeasuredUsage & Pick<BillableUsage, 'free'>;
type LinePricingInput = { measured: PricedUsage; currency: string; part: CommitmentPart };

function priceUsage(item: PricedItem, window: Period, pricing: LinePricingInput): LinePricing {
  const { measured, currency, part } = pricing;
  const { commitment, price } = item;
  if (commitment?.windows) return priceByWindow(item, window, pricing);
  const parts = usageParts(price, measured);
  const base = applyMoneyGrants(
    sumDecimals(parts.map(({ amount }) => amount)),
    computeAmountAbove(measured.allowances),
    measured.free,
  );
  return applyLineCommitment(item, { base, breakdown: parts.map(partText) }, { currency, part });
}

/** Prices a line by the amount that it adds to the cost of its chain, under its own commitment. */
function priceInChain(
  item: PricedItem,
  { until_begin, until_end, parts }: LineCost,
  pricing: LinePricingInput,
): LinePricing {
  return applyLineCommitment(item, { base: until_end.minus(until_begin), breakdown: parts.map(partText) }, pricing);
}

function applyLineCommitment(
  { commitment, price }: PricedItem,
  { base, breakdown }: Pick<LinePricing, 'base' | 'breakdown'>,
  { currency, part }: Pick<LinePricingInput, 'currency' | 'part'>,
): LinePricing {
  if (!commitment) return { base, charge: base, breakdown, commitment_info: null };
  const { amount, charged, rounded, is_trued_up } = committedCharge(base, { commitment, price, part });
  return {
    base,
    charge: charged.charge,
    amount: rounded.charge,
    breakdown,
    commitment_info: commitmentInfo({ ...commitment, true_up: is_trued_up }, { amount, charged: rounded, currency }),
    exact_parts: charged,
    ...(part.since === undefined ? {} : { of_term: termText({ ...part, since: part.since }, amount) }),
  };
}

function termText({ used, since, is_last }: CommitmentPart & { readonly since: Milliseconds }, committed: Decimal) {
  return { used: used.toFixed(), committed: committed.toFixed(), since: formatMs(since), is_last };
}

/** Charge of each time of day under the item's windowed commitment. Their sum is the charge before rounding. */
export function computeTimeOfDayCharges(
  item: PricedItem,
  window: Period,
  { measured }: { measured: MeasuredUsage },
): WindowedCharge['by_time'] {
  return computeWindowedCharge(item, window, { ...measured, ...applyAllowances(measured) }).by_time;
}

function computeWindowedCharge(
  item: PricedItem,
  range: Period,
  { buckets, bucket_starts, as_of }: MeasuredUsage,
): WindowedCharge {
  const { commitment, price } = item;
  if (!commitment?.windows || !buckets || bucket_starts?.length !== buckets.length)
    throw new FarthingError('system_error', `the windows of line item ${item.id} were not read`);
  const used = buckets.map((values, index) => ({ at: bucket_starts[index]!, values }));
  return windowedCharge({
    commitment: { ...commitment, windows: commitment.windows },
    price,
    range,
    over_until: toInstant(as_of),
    used,
  });
}

function priceByWindow(item: PricedItem, range: Period, { measured, currency }: LinePricingInput): LinePricing {
  const charged = computeWindowedCharge(item, range, measured);
  const { price } = item;
  const commitment = item.commitment!;
  const amount = commitment.value === null ? ZERO : committedAmount(commitment.type, commitment.value, price);
  return {
    base: charged.base,
    charge: charged.charge,
    breakdown: partsByTier(charged),
    commitment_info: commitmentInfo(commitment, { amount, charged: roundParts(charged, currency), currency }),
    exact_parts: charged,
    window_terms: {
      amount: commitment.value === null ? null : amount.toFixed(),
      time_buckets: commitment.time_buckets.map((bucket) => ({ ...bucket })),
    },
  };
}

/** Rounds a quantity for display, because a mean may have more digits than a quantity. Pricing and records use the exact value. */
function shownQuantity(quantity: Decimal): Decimal {
  return billedQuantity(quantity).toDecimalPlaces(MAX_FRACTION_DIGITS);
}

/**
 * Computes the parts of a usage charge. For a meter with windows, each window, and each group in it, is priced separately. The breakdown
 * sums the parts of each tier.
 */
function usageParts(price: PriceTerms, measured: MeasuredUsage): ChargePart[] {
  if (measured.buckets === null) return chargeParts(price, billedQuantity(measured.quantity));
  return addParts(measured.buckets.flat().flatMap((value) => chargeParts(price, billedQuantity(value))));
}

/** Formats the charge parts by tier, separately for the line's own price and for the price of each time of day. */
function partsByTier({ parts }: WindowedCharge): Record<string, unknown>[] {
  return [...groupBy(parts, ({ time_bucket }) => time_bucket)].flatMap(([time_bucket, of]) =>
    addParts(of.map(({ part }) => part)).map((part) => ({
      ...partText(part),
      ...(time_bucket === null ? {} : { time_bucket }),
    })),
  );
}

function partText(part: ChargePart): Record<string, unknown> {
  return {
    tier: part.tier,
    units: part.units.toFixed(),
    unit_amount: part.unit_amount.toFixed(),
    flat_amount: part.flat_amount.toFixed(),
    amount: part.amount.toFixed(),
  };
}

/** Copies the money fields of the price, so that a later edit of the price does not change the line. */
function priceSnapshot(price: PriceTerms): Record<string, unknown> {
  const { billing_model, currency, amount } = price;
  const charged = Object.fromEntries(CHARGED_FIELDS.map((field) => [field, price[field] ?? null]));
  return { billing_model, currency, ...charged, amount: String(amount ?? ZERO) };
}
