/**
 * Computes the totals of an invoice from its lines (docs/rules/invoices.md, "Totals"): line coupons → invoice coupons → prepaid credits →
 * taxable amounts → taxes → credits that include tax. Preview, draft and final invoice share this order. A caller omits the terms of steps
 * that do not apply yet.
 */

import { sumTax, type TaxShare } from '../catalog/tax/line-tax.ts';
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { minorUnits } from '../foundation/money.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import { computeLineNet, sumDiscounts } from './adjustment-fields.ts';
import type { LineAdjustments } from './credit-adjustments.ts';
import { type AppliedCoupon, applyCoupons, type CouponInForce, type LineDiscounts } from './discounts.ts';
import { creditsAfterTax, nettedCredits, type PrepaidSplit, type PrepaidWallet, prepaidCredits } from './prepaid.ts';
import { type AppliedTax, computeTaxes, type RateInForce } from './taxes.ts';
import { computeTotals, type Totals } from './totals.ts';

export type AdjustableLine = {
  readonly amount: Decimal;
  readonly price_type: string | null;
  /** Key by which line coupons refer to the line. */
  readonly key: string | null;
  readonly place?: string | undefined;
  readonly charged_ms: Milliseconds | null;
  /** Set for a credit line: its adjustments. Coupons and tax rates skip the line. */
  readonly credit_adjustments?: LineAdjustments | undefined;
  /** Discounts that coupons took off the line when it was drafted. */
  readonly discounted?: LineDiscounts | undefined;
  /** Parts of one charge share this key; coupons treat them as one line. */
  readonly chain?: string | undefined;
};

export type InvoiceTerms = {
  readonly currency: string;
  readonly coupons?: readonly CouponInForce[];
  /** Every prepaid wallet of the customer in this currency, in order of use. Absent for a draft, which no wallet pays yet. */
  readonly prepaid?: readonly PrepaidWallet[] | undefined;
  /** Wallets that will pay a draft when it becomes final. They decide which of its charges can be paid by returned credits. */
  readonly draft_wallets?: readonly PrepaidWallet[] | undefined;
  readonly rates?: readonly RateInForce[];
  /** If true, the amount that credits pay is taxed, too, because the credits were not taxed at purchase. */
  readonly taxes_before_credits?: boolean;
  readonly amount_paid?: Decimal;
  readonly adjustment_amount?: Decimal;
};

export type AdjustedLines = Totals & {
  readonly adjustments: readonly LineAdjustments[];
  readonly coupons_applied: readonly AppliedCoupon[];
  readonly taxes_applied: readonly AppliedTax[];
  /** Amount that each wallet paid before taxes; `used_after_tax` has the amounts after taxes. */
  readonly prepaid_used: readonly Decimal[];
  readonly used_after_tax: readonly Decimal[];
};

export function applyLineAdjustments(lines: readonly AdjustableLine[], terms: InvoiceTerms): AdjustedLines {
  const adjusted = computeAdjustments(lines, terms);
  const used = sumDecimals(adjusted.prepaid_used);
  return used.gt(0) && computeNetTotal(adjusted).lt(0) ? withFewerCredits(lines, terms, used) : adjusted;
}

/**
 * Applies the largest amount of credits with which the net total is not negative. Tax on credit lines can lower the total so far that the
 * credits exceed it. Fewer credits increase the taxable amount and its tax, so a binary search finds the amount, to the minor unit.
 */
function withFewerCredits(lines: readonly AdjustableLine[], terms: InvoiceTerms, used: Decimal): AdjustedLines {
  const unit = new Decimal(10).pow(-minorUnits(terms.currency));
  let [enough, tooMany] = [ZERO, used.dividedBy(unit).ceil()];
  while (tooMany.minus(enough).gt(1)) {
    const middle = enough.plus(tooMany).dividedToIntegerBy(2);
    if (computeNetTotal(computeAdjustments(lines, terms, middle.times(unit))).lt(0)) tooMany = middle;
    else enough = middle;
  }
  return computeAdjustments(lines, terms, enough.times(unit));
}

function computeAdjustments(lines: readonly AdjustableLine[], terms: InvoiceTerms, at_most?: Decimal): AdjustedLines {
  const { currency, coupons = [], prepaid = [], rates = [] } = terms;
  const discounts = applyCoupons(lines, coupons, currency);
  const nets = lines.map(({ amount }, index) => amount.minus(sumDiscounts(discounts.lines[index]!)));
  const netted = netReturnedCredits(lines, nets, terms);
  const open = lines.map(({ price_type }, index) => ({ price_type, net: nets[index]!.minus(netted[index]!) }));
  const paid = prepaidCredits(open, prepaid, { currency, amount_paid: terms.amount_paid, at_most });
  const credits = netted.map((credited, index) => credited.plus(paid.lines[index]!));
  const taxed = lines.map(({ credit_adjustments }, index) => {
    if (credit_adjustments) return ZERO;
    return terms.taxes_before_credits ? nets[index]! : nets[index]!.minus(credits[index]!);
  });
  const taxes = computeTaxes(taxed, rates, currency);
  const adjustments = lines.map(({ credit_adjustments }, index) => ({
    ...discounts.lines[index]!,
    prepaid_credits_applied: credits[index]!,
    taxes: credit_adjustments?.taxes ?? taxes.lines[index]!,
  }));
  const rests = lines.map(({ amount, price_type }, index) => ({
    price_type,
    net: computeRemainingAmount(amount, adjustments[index]!),
  }));
  let after: PrepaidSplit = { lines: [], wallets: prepaid.map(() => ZERO) };
  const amounts = lines.map(({ amount }) => amount);
  const totals = computeTotals(amounts, currency, {
    total_discount: () => sumDecimals(adjustments.map(sumDiscounts)),
    total_prepaid_credits_applied: () => sumDecimals(credits),
    total_tax: () => addedTax(adjustments),
    adjustment_amount: () => terms.adjustment_amount ?? ZERO,
    amount_paid: () => terms.amount_paid ?? ZERO,
    total_credits_applied_after_tax: (remaining) => {
      after = creditsAfterTax(rests, prepaid, { currency, used: paid.wallets, remaining });
      return sumDecimals(after.wallets);
    },
  });
  return {
    ...totals,
    adjustments,
    coupons_applied: discounts.applied,
    taxes_applied: taxes.applied,
    prepaid_used: paid.wallets,
    used_after_tax: after.wallets,
  };
}

/** Amount of returned credits that pays each line; negative for a line that returns credits. */
function netReturnedCredits(
  lines: readonly AdjustableLine[],
  nets: readonly Decimal[],
  { currency, prepaid, draft_wallets }: Pick<InvoiceTerms, 'currency' | 'prepaid' | 'draft_wallets'>,
): Decimal[] {
  const returned = lines.map(({ credit_adjustments }) => credit_adjustments?.prepaid_credits_applied.negated() ?? null);
  const netted = nettedCredits(
    nets.map((net, index) => ({ net, returned: returned[index]!, price_type: lines[index]!.price_type })),
    { currency, wallets: prepaid ?? draft_wallets },
  );
  return netted.map((credits, index) => credits.minus(returned[index] ?? ZERO));
}

/** Computes the amount of a line after discounts and the credits that pay before taxes, plus its exclusive taxes. */
function computeRemainingAmount(amount: Decimal, adjustments: LineAdjustments): Decimal {
  return computeLineNet({ ...adjustments, amount }).plus(sumTax(adjustments.taxes, 'exclusive'));
}

function addedTax(adjustments: readonly { readonly taxes: readonly TaxShare[] }[]): Decimal {
  return sumDecimals(adjustments.map(({ taxes }) => sumTax(taxes, 'exclusive')));
}

/** Computes the net sum of the lines. It may be negative; the `total` of the invoice is then 0. */
export function computeNetTotal(
  totals: Pick<Totals, 'subtotal' | 'total_discount' | 'total_prepaid_credits_applied' | 'total_tax'>,
): Decimal {
  const { subtotal, total_discount, total_prepaid_credits_applied, total_tax } = totals;
  return subtotal.minus(total_discount).minus(total_prepaid_credits_applied).plus(total_tax);
}
