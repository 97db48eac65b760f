/**
 * What prepaid wallets pay of an invoice (docs/rules/invoices.md, "Totals"): line after line, wallet after wallet, of the prices that a wallet
 * pays for what discounts left of them, and never more than the invoice comes to.
 */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import { minorUnits, roundMoney } from '../money.ts';
import { spread } from '../spread.ts';

export type PrepaidLine = { readonly net: Decimal; readonly price_type: string | null };
export type PrepaidWallet = {
  /** Money that its lots can pay before taxes. */
  readonly balance: Decimal;
  /** Money that its other lots can pay after taxes, when the invoice has taken `used` of `balance`; nothing where absent. */
  readonly balanceAfterTax?: (used: Decimal) => Decimal;
  /** Which lines it pays for. */
  readonly pays: (price_type: string | null) => boolean;
};
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

/**
 * Credits that pay after taxes pay the rest of each line with its tax. They take what `used` leaves in the wallets, and never more than
 * `remaining`.
 */
export function creditsAfterTax(
  lines: readonly PrepaidLine[],
  wallets: readonly PrepaidWallet[],
  { currency, used, remaining }: { currency: string; used: readonly Decimal[]; remaining: Decimal },
): PrepaidSplit {
  const after = wallets.map(({ pays, balanceAfterTax }, index) => ({
    pays,
    balance: balanceAfterTax?.(used[index]!) ?? ZERO,
  }));
  return prepaidCredits(lines, after, { currency, at_most: remaining });
}

type NettedLine = {
  /** After discounts; below 0 where the line gives back. */
  readonly net: Decimal;
  /** Prepaid credits that had paid the credited charge; null if the line charges. */
  readonly returned: Decimal | null;
  /** A wallet with credits pays lines of this price type. */
  readonly has_wallet: boolean;
};

/**
 * Credits that lines give back pay the charges of the same invoice first (docs/rules/invoices.md, "What is given back"): all of them where the
 * charges come to what is given back or more, else their share of it. So what is left over is split as what is given back was paid. Charges that
 * no wallet pays come first, so that a wallet is left to pay what only it can; the balance in real time counts on that (usage-net.ts).
 */
export function nettedCredits(lines: readonly NettedLine[], currency: string): Decimal[] {
  const charges = lines.map(({ net, returned }) => (returned === null ? Decimal.max(ZERO, net) : ZERO));
  const returned = sumOf(lines.map((line) => line.returned ?? ZERO));
  const charged = sumOf(charges);
  if (returned.lte(0) || charged.isZero()) return lines.map(() => ZERO);
  const given = sumOf(lines.map((line) => (line.returned === null ? ZERO : line.net.negated())));
  const netted = charged.gte(given) ? returned : roundMoney(returned.times(charged).dividedBy(given), currency);
  const apart = charges.map((charge, index) => (lines[index]!.has_wallet ? ZERO : charge));
  const onApart = Decimal.min(netted, sumOf(apart));
  const first = spread(onApart, apart, currency);
  const others = charges.map((charge, index) => charge.minus(apart[index]!));
  const second = spread(netted.minus(onApart), others, currency);
  return first.map((part, index) => part.plus(second[index]!));
}
