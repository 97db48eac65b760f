/**
 * Applies coupons to the lines of an invoice (docs/rules/coupons.md, "On an invoice"). Coupons of a line come first: each is computed from
 * the price of the line, and all of them discount at most that price. Coupons of the invoice follow in order of attachment: each is
 * computed from the remainder of the previous ones, and spread over the lines.
 */

import type { Coupon } from '../catalog/coupon/record.ts';
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { groupBy } from '../foundation/group-by.ts';
import { roundMoney } from '../foundation/money.ts';
import { spread } from '../foundation/spread.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import { type AdjustmentAmounts, DISCOUNT_FIELDS, sumDiscounts } from './adjustment-fields.ts';

export type CouponInForce = {
  readonly coupon: Coupon;
  readonly coupon_association_id: string | null;
  readonly subscription_id: string | null;
  /** Key of the lines that the coupon discounts; null if it discounts the invoice. */
  readonly line: string | null;
  /** Keys of the lines that replaced the discounted line. */
  readonly followers?: ReadonlySet<string>;
  /** Interval in which the coupon applies, from `start_ms` until `end_ms`, exclusive; null without an end. */
  readonly start_ms: Milliseconds | null;
  readonly end_ms: Milliseconds | null;
  /** Number of other invoices that the coupon discounted; not counted for `forever`. */
  readonly uses?: number;
  /** Whether the invoice credits a part of the coupon's discount. The coupon then applies again, up to that part. */
  readonly is_returning?: boolean;
};

type DiscountableLine = {
  readonly amount: Decimal;
  /** Key by which coupons name the line. */
  readonly key: string | null;
  /** Index of the line on a manual invoice; coupons refer to the line by it. */
  readonly place?: string | undefined;
  /** Instant of the charge; null if it matches every coupon's interval. */
  readonly charged_ms: Milliseconds | null;
  /** Set for a credited line: the discounts credited with it. No coupon applies to it. */
  readonly credit_adjustments?: LineDiscounts | undefined;
  /** Earlier discounts on the line. */
  readonly discounted?: LineDiscounts | undefined;
  /** Lines with one `chain` are parts of one charge, and a coupon discounts them as one line. */
  readonly chain?: string | undefined;
};

/** Discount on a line by the coupon of one association, or the part of it that a line credits. */
export type DiscountShare = { readonly coupon_association_id: string; readonly discount_amount: Decimal };
export type LineDiscount = { readonly coupon_association_id: string; readonly discount_amount: string };

export type LineDiscounts = Pick<AdjustmentAmounts, (typeof DISCOUNT_FIELDS)[number]> & {
  /** Discounts by coupon association; absent if unknown. A coupon without an association, as on a manual invoice, is not included. */
  readonly shares?: readonly DiscountShare[] | undefined;
};

export type AppliedCoupon = {
  readonly by: CouponInForce;
  /** Index of the discounted line; null if the invoice was discounted. */
  readonly line: number | null;
  readonly original_price: Decimal;
  readonly discounted_amount: Decimal;
};

type InvoiceDiscounts = { readonly lines: readonly LineDiscounts[]; readonly applied: readonly AppliedCoupon[] };

type DiscountTerms = Pick<Coupon, 'type' | 'amount_off' | 'percentage_off'>;

/** Computes the discount on an amount: it is rounded, and at most the amount. */
export function computeDiscount(
  { type, amount_off, percentage_off }: DiscountTerms,
  amount: Decimal,
  currency: string,
): Decimal {
  if (!amount.gt(0)) return ZERO;
  const off = type === 'fixed' ? new Decimal(amount_off ?? 0) : amount.times(percentage_off ?? 0).dividedBy(100);
  return Decimal.min(amount, roundMoney(off, currency));
}

/** Whether the coupon applies once more after `uses` invoices. */
export function isUsableAgain(
  { cadence, duration_in_periods }: Pick<Coupon, 'cadence' | 'duration_in_periods'>,
  uses: number,
) {
  if (cadence === 'forever') return true;
  return uses < (cadence === 'once' ? 1 : (duration_in_periods ?? 0));
}

type LineDiscountState = {
  line_item_discount: Decimal;
  invoice_level_discount: Decimal;
  shares: DiscountShare[] | undefined;
};
type DiscountState = {
  lines: readonly DiscountableLine[];
  taken: LineDiscountState[];
  applied: AppliedCoupon[];
  currency: string;
};

export function applyCoupons(
  lines: readonly DiscountableLine[],
  coupons: readonly CouponInForce[],
  currency: string,
): InvoiceDiscounts {
  const taken = lines.map(({ credit_adjustments, discounted }) => {
    const before = credit_adjustments ?? discounted;
    return {
      line_item_discount: before?.line_item_discount ?? ZERO,
      invoice_level_discount: before?.invoice_level_discount ?? ZERO,
      shares: before ? before.shares && [...before.shares] : [],
    };
  });
  const taking: DiscountState = { lines, taken, applied: [], currency };
  for (const coupon of coupons) if (coupon.line !== null) applyToLines(coupon, taking);
  for (const coupon of coupons) if (coupon.line === null) applyToInvoice(coupon, taking);
  return { lines: taken, applied: taking.applied };
}

/** Applies a coupon to its lines. A fixed amount is the total for all lines of the coupon, not an amount for each. */
function applyToLines(by: CouponInForce, taking: DiscountState): void {
  const { coupon } = by;
  let room = computeDiscountLimit(by, taking);
  const ofChain = computeChainDiscounts(by, taking);
  for (const [index, line] of taking.lines.entries()) {
    if (!isTargeted(by, line) || !isApplicable(by, line)) continue;
    const wanted = line.chain === undefined ? computeDiscount(coupon, line.amount, taking.currency) : ofChain(index);
    const off = Decimal.min(wanted, computeUndiscounted(index, taking), room ?? line.amount);
    if (!off.gt(0)) continue;
    room = room?.minus(off) ?? null;
    const own = taking.taken[index]!;
    own.line_item_discount = own.line_item_discount.plus(off);
    recordShare(own, by, off);
    taking.applied.push({ by, line: index, original_price: line.amount, discounted_amount: off });
  }
}

/**
 * Returns the discount of each part of a chain, by the index of the part: the discount on all parts up to it, less the
 * discounts of the earlier parts. No part gets more than the discount on the whole chain leaves. So the discounts of
 * the parts add up to that of the whole, even if a part is below 0.
 */
function computeChainDiscounts(by: CouponInForce, { lines, currency }: DiscountState): (index: number) => Decimal {
  const isDiscounted = (line: DiscountableLine) => isTargeted(by, line) && isApplicable(by, line);
  return (index) => {
    const parts = lines
      .map((line, place) => ({ line, place }))
      .filter(({ line }) => line.chain === lines[index]!.chain);
    const named = parts.filter(({ line }) => isDiscounted(line));
    const discount = (those: typeof named) =>
      computeDiscount(by.coupon, sumDecimals(those.map(({ line }) => line.amount)), currency);
    const whole = discount(named);
    let taken = ZERO;
    for (const [count, { place }] of named.entries()) {
      const off = Decimal.max(ZERO, Decimal.min(discount(named.slice(0, count + 1)), whole).minus(taken));
      if (place === index) return off;
      taken = taken.plus(off);
    }
    return ZERO;
  };
}

function isTargeted({ line: named, followers }: CouponInForce, { key, place }: DiscountableLine): boolean {
  return key === named || place === named || (key !== null && followers?.has(key) === true);
}

function recordShare(own: LineDiscountState, { coupon_association_id }: CouponInForce, discount_amount: Decimal): void {
  if (coupon_association_id === null || discount_amount.isZero()) return;
  own.shares?.push({ coupon_association_id, discount_amount });
}

function applyToInvoice(by: CouponInForce, taking: DiscountState): void {
  const { lines, currency, taken } = taking;
  const left = lines.map((line, index) => (isApplicable(by, line) ? computeUndiscounted(index, taking) : ZERO));
  const original_price = Decimal.max(ZERO, sumDecimals(left));
  const room = computeDiscountLimit(by, taking) ?? original_price;
  const off = Decimal.min(computeDiscount(by.coupon, original_price, currency), room);
  if (!off.gt(0)) return;
  const weights = left.map((amount) => Decimal.max(ZERO, amount));
  for (const [index, part] of spread(off, weights, currency).entries()) {
    const own = taken[index]!;
    own.invoice_level_discount = own.invoice_level_discount.plus(part);
    recordShare(own, by, part);
  }
  taking.applied.push({ by, line: null, original_price, discounted_amount: off });
}

function isApplicable(
  { start_ms, end_ms }: CouponInForce,
  { charged_ms, credit_adjustments }: DiscountableLine,
): boolean {
  if (credit_adjustments) return false;
  if (charged_ms === null) return true;
  return (start_ms === null || start_ms <= charged_ms) && (end_ms === null || charged_ms < end_ms);
}

/** Computes the amount of a line after the discounts so far; it is negative for a credit line. */
function computeUndiscounted(index: number, { lines, taken }: DiscountState): Decimal {
  return lines[index]!.amount.minus(sumDiscounts(taken[index]!));
}

/** Computes the amount that a fixed coupon may still discount in total; null for a percentage coupon. */
function computeDiscountLimit(by: CouponInForce, { taken, currency }: DiscountState): Decimal | null {
  const { coupon, is_returning } = by;
  if (coupon.type !== 'fixed') return null;
  const own = roundMoney(coupon.amount_off ?? '0', currency);
  if (!is_returning) return own;
  const net = sumDecimals(taken.map((line) => computeTakenByCoupon(by, line)));
  return Decimal.min(own, Decimal.max(ZERO, net.negated()));
}

/**
 * Computes the discount of the coupon on a line. If the shares by coupon are unknown, the whole discount of the line counts as that of the
 * coupon.
 */
function computeTakenByCoupon({ coupon_association_id }: CouponInForce, line: LineDiscountState): Decimal {
  if (!line.shares) return sumDiscounts(line);
  const own = line.shares.filter((share) => share.coupon_association_id === coupon_association_id);
  return sumDecimals(own.map(({ discount_amount }) => discount_amount));
}

/** Stored form of the shares, summed up by coupon. */
export function toLineDiscounts(shares: readonly DiscountShare[] | undefined): LineDiscount[] | null {
  if (!shares || shares.length === 0) return null;
  return mergeShares(shares).map((share) => ({ ...share, discount_amount: share.discount_amount.toFixed() }));
}

export function mergeShares(shares: readonly DiscountShare[]): DiscountShare[] {
  const byAssociation = groupBy(shares, ({ coupon_association_id }) => coupon_association_id);
  return Array.from(byAssociation, ([coupon_association_id, own]) => ({
    coupon_association_id,
    discount_amount: sumDecimals(own.map(({ discount_amount }) => discount_amount)),
  }));
}
