/**
 * What coupons take off the lines of an invoice (docs/rules/coupons.md, "On an invoice"): first those of a line, each by what the
 * line costs and together never more than that; then those of the invoice, in the order in which they were attached, each by what
 * the ones before it left, spread over the lines.
 */

import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import { groupBy } from '../group-by.ts';
import { roundMoney } from '../money.ts';
import { spread } from '../spread.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Coupon } from './record.ts';

export type CouponInForce = {
  readonly coupon: Coupon;
  readonly coupon_association_id: string | null;
  readonly subscription_id: string | null;
  /** The key of the lines that it takes from; null where it takes from the invoice. */
  readonly line: string | null;
  /** Of those that go on for that line. */
  readonly followers?: ReadonlySet<string>;
  /** From when on and until when it works; open where null. */
  readonly start_ms: Milliseconds | null;
  readonly end_ms: Milliseconds | null;
  /** On how many other invoices it has taken something off; not counted where it works for ever. */
  readonly uses?: number;
  /** It takes off again what this invoice gives back of it, and no more. */
  readonly is_returning?: boolean;
};

export type DiscountableLine = {
  readonly amount: Decimal;
  /** What a coupon names it by. */
  readonly key: string | null;
  /** Its place on an invoice, by which coupons name it that are stated by hand. */
  readonly place?: string | undefined;
  /** When it is charged; null where it is charged at any time. */
  readonly charged_ms: Milliseconds | null;
  /** Of what is given back: the discounts that go with it. No coupon works on it. */
  readonly credit_adjustments?: LineDiscounts | undefined;
  /** What coupons took off it before. */
  readonly discounted?: LineDiscounts | undefined;
  /** Lines that are parts of one charge: a coupon takes off them what it would take off the whole. */
  readonly chain?: string | undefined;
};

/** What the coupon of one association took off a line, or what a line gives back of it. */
export type DiscountShare = { readonly coupon_association_id: string; readonly discount_amount: Decimal };
/** The same as it is stored. */
export type LineDiscount = { readonly coupon_association_id: string; readonly discount_amount: string };

export type LineDiscounts = {
  readonly line_item_discount: Decimal;
  readonly invoice_level_discount: Decimal;
  /** How much of both is of which coupon of a subscription; not known where absent. */
  readonly shares?: readonly DiscountShare[] | undefined;
};

export type AppliedCoupon = {
  readonly by: CouponInForce;
  /** The index of its line; null where it was taken off the invoice. */
  readonly line: number | null;
  readonly original_price: Decimal;
  readonly discounted_amount: Decimal;
};

export type InvoiceDiscounts = { readonly lines: readonly LineDiscounts[]; readonly applied: readonly AppliedCoupon[] };

type DiscountTerms = Pick<Coupon, 'type' | 'amount_off' | 'percentage_off'>;

/** What it takes off an amount: rounded, and never more than that is. */
export function computeDiscount(
  { type, amount_off, percentage_off }: DiscountTerms,
  amount: Decimal,
  currency: string,
): Decimal {
  if (!amount.gt(0)) return ZERO;
  const off = type === 'fixed' ? new Decimal(amount_off ?? 0) : amount.times(percentage_off ?? 0).dividedBy(100);
  return Decimal.min(amount, roundMoney(off, currency));
}

/** Whether it works once more, after it has worked on so many invoices. */
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

/** A fixed amount is one for all lines of what the coupon is for. */
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
 * By its place, what comes off a part of one charge: what comes off all parts up to it less what came off before, and never more than comes
 * off the whole. So the parts have the discount of the whole, also where one of them is below 0.
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

/** What coupons left of a line so far; negative of a line that lowers the invoice. */
function computeUndiscounted(index: number, { lines, taken }: DiscountState): Decimal {
  const { line_item_discount, invoice_level_discount } = taken[index]!;
  return lines[index]!.amount.minus(line_item_discount).minus(invoice_level_discount);
}

/** What a fixed coupon may take at most in all; null where its own amount alone limits it. */
function computeDiscountLimit(by: CouponInForce, { taken, currency }: DiscountState): Decimal | null {
  const { coupon, is_returning } = by;
  if (coupon.type !== 'fixed') return null;
  const own = roundMoney(coupon.amount_off ?? '0', currency);
  if (!is_returning) return own;
  const net = sumDecimals(taken.map((line) => computeTakenByCoupon(by, line)));
  return Decimal.min(own, Decimal.max(ZERO, net.negated()));
}

/** Of what another coupon gave nothing comes back to this one. Where it is not known whose it was, it may be. */
function computeTakenByCoupon({ coupon_association_id }: CouponInForce, line: LineDiscountState): Decimal {
  if (!line.shares) return line.line_item_discount.plus(line.invoice_level_discount);
  const own = line.shares.filter((share) => share.coupon_association_id === coupon_association_id);
  return sumDecimals(own.map(({ discount_amount }) => discount_amount));
}

/** As it is stored, in all by each. */
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
