/**
 * The sums of an invoice: "subtotal = Σ lines → line coupons → invoice coupons → prepaid credits → tax base → taxes.
 * total = max(0, subtotal − discounts − credits + tax). amount_due = total − adjustments; amount_remaining =
 * max(0, amount_due − amount_paid)" (pricing-and-invoicing §2.9). "Each line first, then the sum" (decisions §6): the
 * amounts that come in are rounded already.
 */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import { FarthingError } from '../error.ts';
import { minorUnits } from '../money.ts';

export type Deductions = {
  readonly discount?: Decimal;
  readonly prepaid_credits?: Decimal;
  readonly tax?: Decimal;
  readonly adjustment?: Decimal;
  readonly paid?: Decimal;
};

export type Totals = {
  readonly subtotal: Decimal;
  readonly total: Decimal;
  readonly amount_due: Decimal;
  readonly amount_remaining: Decimal;
};

export function totalsOf(lineAmounts: readonly Decimal[], currency: string, deductions: Deductions = {}): Totals {
  const { discount = ZERO, prepaid_credits = ZERO, tax = ZERO, adjustment = ZERO, paid = ZERO } = deductions;
  for (const amount of lineAmounts) checkRounded(amount, currency);
  const subtotal = sumOf(lineAmounts);
  const total = Decimal.max(ZERO, subtotal.minus(discount).minus(prepaid_credits).plus(tax));
  const amount_due = total.minus(adjustment);
  return { subtotal, total, amount_due, amount_remaining: Decimal.max(ZERO, amount_due.minus(paid)) };
}

function checkRounded(amount: Decimal, currency: string): void {
  if (amount.decimalPlaces() > minorUnits(currency))
    throw new FarthingError(
      'system_error',
      `a line of ${amount.toFixed()} ${currency} was not rounded before it was summed`,
    );
}
