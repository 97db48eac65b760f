/**
 * The sums of an invoice (docs/rules/invoices.md, "Totals"): the subtotal of its lines, less discounts and credits, plus
 * tax, is the total; less adjustments it is due; less what was paid it remains. The amounts that come in are rounded
 * already (docs/rules/numbers.md, "Each line first, then the sum").
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
