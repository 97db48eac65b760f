/**
 * What prepaid wallets pay of the usage on an invoice (docs/rules/invoices.md, "Totals"): wallet after wallet, line after line, of each
 * what discounts left of it.
 */
import { Decimal, ZERO } from '../decimal.ts';
import { minorUnits } from '../money.ts';

export type PrepaidLine = { readonly net: Decimal; readonly price_type: string | null };

/** `balances`: what is in each wallet in money, in the order in which they are used. What is less than a minor unit pays nothing. */
export function prepaidCredits(
  lines: readonly PrepaidLine[],
  balances: readonly Decimal[],
  currency: string,
): Decimal[] {
  const left = balances.map((balance) => balance.toDecimalPlaces(minorUnits(currency), Decimal.ROUND_DOWN));
  return lines.map(({ net, price_type }) => {
    if (price_type !== 'USAGE') return ZERO;
    let paid = ZERO;
    for (const [index, balance] of left.entries()) {
      const part = Decimal.max(ZERO, Decimal.min(net.minus(paid), balance));
      left[index] = balance.minus(part);
      paid = paid.plus(part);
    }
    return paid;
  });
}
