/**
 * What prepaid wallets pay of an invoice (docs/rules/invoices.md, "Totals"): line after line, wallet after wallet, of the prices that a wallet
 * pays for what discounts left of them, and never more than the invoice comes to.
 */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import { minorUnits } from '../money.ts';

export type PrepaidLine = { readonly net: Decimal; readonly price_type: string | null };
/** What is in it in money, and which lines it pays for. */
export type PrepaidWallet = { readonly balance: Decimal; readonly pays: (price_type: string | null) => boolean };
/** What is paid of each line, and by each wallet. */
export type PrepaidSplit = { readonly lines: readonly Decimal[]; readonly wallets: readonly Decimal[] };

type PrepaidTerms = {
  readonly currency: string;
  readonly amount_paid?: Decimal | undefined;
  /** No more than this; as much as there is to be paid where it is absent. */
  readonly at_most?: Decimal | undefined;
};

/** `wallets` in the order in which they are used. What is less than a minor unit pays nothing. */
export function prepaidCredits(
  lines: readonly PrepaidLine[],
  wallets: readonly PrepaidWallet[],
  { currency, amount_paid = ZERO, at_most }: PrepaidTerms,
): PrepaidSplit {
  const balances = wallets.map(({ balance }) => balance.toDecimalPlaces(minorUnits(currency), Decimal.ROUND_DOWN));
  const left = [...balances];
  // What is given back on other lines has lowered it already, and so has what was paid.
  let open = Decimal.max(ZERO, sumOf(lines.map(({ net }) => net)).minus(amount_paid));
  if (at_most) open = Decimal.min(open, at_most);
  const paid = lines.map(({ net, price_type }) => {
    let credits = ZERO;
    for (const [index, { pays }] of wallets.entries()) {
      if (!pays(price_type)) continue;
      const part = Decimal.max(ZERO, Decimal.min(net.minus(credits), left[index]!, open));
      left[index] = left[index]!.minus(part);
      open = open.minus(part);
      credits = credits.plus(part);
    }
    return credits;
  });
  return { lines: paid, wallets: balances.map((balance, index) => balance.minus(left[index]!)) };
}
