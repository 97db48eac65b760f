/**
 * Computes the amounts that prepaid wallets pay of an invoice (docs/rules/invoices.md, "Totals"), line by line and wallet by wallet. A
 * wallet pays lines of its price types, up to their amount after discounts. All wallets pay at most the invoice.
 */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { minorUnits, roundMoney } from '../foundation/money.ts';
import { spread } from '../foundation/spread.ts';

type PrepaidLine = { readonly net: Decimal; readonly price_type: string | null };
export type PrepaidWallet = {
  /** Money of lots that pay before taxes. */
  readonly balance: Decimal;
  /** Money of the other lots, which pay after taxes, if the invoice uses `used` of `balance`; no such money if absent. */
  readonly balanceAfterTax?: (used: Decimal) => Decimal;
  readonly pays: (price_type: string | null) => boolean;
};
export type PrepaidSplit = { readonly lines: readonly Decimal[]; readonly wallets: readonly Decimal[] };

type PrepaidTerms = {
  readonly currency: string;
  readonly amount_paid?: Decimal | undefined;
  /** Upper limit of the credits used; no limit but the open amount if absent. */
  readonly at_most?: Decimal | undefined;
};

/** `wallets` are in order of use. A fraction of a minor unit pays nothing. */
export function prepaidCredits(
  lines: readonly PrepaidLine[],
  wallets: readonly PrepaidWallet[],
  { currency, amount_paid = ZERO, at_most }: PrepaidTerms,
): PrepaidSplit {
  const balances = wallets.map(({ balance }) => balance.toDecimalPlaces(minorUnits(currency), Decimal.ROUND_DOWN));
  const left = [...balances];
  // Credit lines and earlier payments have lowered the open amount already.
  let open = Decimal.max(ZERO, sumDecimals(lines.map(({ net }) => net)).minus(amount_paid));
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
  /** After discounts; below 0 for a line that credits. */
  readonly net: Decimal;
  /** Prepaid credits that had paid the credited charge; null if the line charges. */
  readonly returned: Decimal | null;
  readonly price_type: string | null;
};

type Netting = {
  readonly currency: string;
  /** Every prepaid wallet of the customer, also with a balance of 0. Undefined for a draft. */
  readonly wallets: readonly PrepaidWallet[] | undefined;
};

/**
 * Returned credits first pay charges of the same invoice (docs/rules/invoices.md, "What is given back"). If the charges are at least the
 * credited amount, all credits pay; else the share that the charges have of it. So the rest is split as the credited charge was paid.
 * Credits that came from wallets for one kind of price pay charges of that kind only.
 *
 * @returns the credits that pay each line, 0 for lines that credit
 */
export function nettedCredits(lines: readonly NettedLine[], { currency, wallets }: Netting): Decimal[] {
  let unpaid = lines.map(({ net, returned }) => (returned === null ? Decimal.max(ZERO, net) : ZERO));
  let netted = lines.map(() => ZERO);
  const returned = sumDecimals(lines.map((line) => line.returned ?? ZERO));
  const charged = sumDecimals(unpaid);
  if (returned.lte(0) || charged.isZero()) return netted;
  const credited = sumDecimals(lines.map((line) => (line.returned === null ? ZERO : line.net.negated())));
  let open = charged.gte(credited) ? returned : roundMoney(returned.times(charged).dividedBy(credited), currency);
  for (const { amount, canPay } of creditsByUse(lines, wallets)) {
    const payable = unpaid.map((charge, index) => (canPay(lines[index]!.price_type) ? charge : ZERO));
    const used = Decimal.min(open, amount, sumDecimals(payable));
    const paid = spread(used, payable, currency);
    open = open.minus(used);
    unpaid = unpaid.map((charge, index) => charge.minus(paid[index]!));
    netted = netted.map((credits, index) => credits.plus(paid[index]!));
  }
  return netted;
}

type CreditsOfOneUse = { readonly amount: Decimal; readonly canPay: (price_type: string | null) => boolean };

/** Groups the returned credits by the price types that they can pay. Credits that can pay the fewest come first. */
function creditsByUse(lines: readonly NettedLine[], wallets: Netting['wallets']): CreditsOfOneUse[] {
  const charged_types = new Set(lines.filter((line) => line.returned === null).map((line) => line.price_type));
  const uses = new Map<string, { amount: Decimal; readonly payable: readonly (string | null)[] }>();
  for (const { returned, price_type } of lines) {
    if (returned === null || returned.isZero()) continue;
    const payable = [...charged_types].filter((type) => canNet(wallets, { from: price_type, to: type }));
    const key = JSON.stringify(payable);
    const { amount } = uses.get(key) ?? { amount: ZERO };
    uses.set(key, { amount: amount.plus(returned), payable });
  }
  return [...uses.values()]
    .sort((a, b) => a.payable.length - b.payable.length)
    .map(({ amount, payable }) => ({ amount, canPay: (type) => payable.includes(type) }));
}

/**
 * Credits on a draft pay only charges of their own price type, as the default wallet does. On a final invoice the wallets decide: if
 * another one has credits for the charge, netting only moves credits from one wallet to the other.
 */
function canNet(
  wallets: readonly PrepaidWallet[] | undefined,
  { from, to }: { readonly from: string | null; readonly to: string | null },
): boolean {
  if (wallets === undefined) return from === to;
  const holders = wallets.filter(({ pays }) => pays(from));
  return holders.every(({ pays }) => pays(to)) || wallets.some(({ balance, pays }) => balance.gt(0) && pays(to));
}
