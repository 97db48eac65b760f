/**
 * Computes the amounts that prepaid wallets pay of an invoice (docs/rules/invoices.md, "Totals"), line by line and wallet by wallet. A
 * wallet pays lines of its price types, up to their amount after discounts. All wallets pay at most the invoice.
 */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { groupBy } from '../foundation/group-by.ts';
import { roundMoney } from '../foundation/money.ts';
import { spread } from '../foundation/spread.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import { deductFromLots, filterLotsByKind, type Lot, type LotKind, takeFromLots } from './wallet/lots.ts';
import { computeFreeCredits, type PromisedCredits } from './wallet/promises.ts';
import { computePayableMoney, toCredits } from './wallet/rates.ts';

type PrepaidLine = { readonly net: Decimal; readonly price_type: string | null };
/** A prepaid wallet with the credits from which its payments are computed. */
export type PrepaidWallet = {
  /** Price types of the lines that the wallet pays; ALL stands for every type. */
  readonly price_types: readonly string[];
  readonly conversion_rate: string;
  /** Credit lots that pay before taxes and credit lots that pay after them. */
  readonly lots: readonly Lot[];
  /** Reserved credits, which pay nothing. */
  readonly promised: readonly PromisedCredits[];
  /** Lots that expired before this instant pay nothing. */
  readonly at_ms: Milliseconds;
};
export type PrepaidSplit = { readonly lines: readonly Decimal[]; readonly wallets: readonly Decimal[] };

type PrepaidTerms = {
  readonly currency: string;
  readonly amount_paid?: Decimal | undefined;
  /** Maximum amount that credits pay. If absent, only the open amount limits it. */
  readonly at_most?: Decimal | undefined;
};

/** Applies prepaid credits to the lines. `wallets` are in the order of their use. */
export function prepaidCredits(
  lines: readonly PrepaidLine[],
  wallets: readonly PrepaidWallet[],
  terms: PrepaidTerms,
): PrepaidSplit {
  const before = wallets.map((wallet) => {
    return { price_types: wallet.price_types, balance: computeBalanceBeforeTax(wallet, terms.currency) };
  });
  return splitCredits(lines, before, terms);
}

/**
 * Applies credits that pay after taxes: they pay the rest of each line with its tax. They are limited to the credits
 * that `used` leaves in the wallets, and to `remaining`.
 */
export function creditsAfterTax(
  lines: readonly PrepaidLine[],
  wallets: readonly PrepaidWallet[],
  { currency, used, remaining }: { currency: string; used: readonly Decimal[]; remaining: Decimal },
): PrepaidSplit {
  const after = wallets.map((wallet, index) => {
    return { price_types: wallet.price_types, balance: computeBalanceAfterTax(wallet, used[index]!, currency) };
  });
  return splitCredits(lines, after, { at_most: remaining });
}

type PrepaidBalance = Pick<PrepaidWallet, 'price_types'> & { readonly balance: Decimal };

function splitCredits(
  lines: readonly PrepaidLine[],
  wallets: readonly PrepaidBalance[],
  { amount_paid = ZERO, at_most }: Omit<PrepaidTerms, 'currency'>,
): PrepaidSplit {
  const balances = wallets.map(({ balance }) => balance);
  const left = [...balances];
  // Credit lines and earlier payments have lowered the open amount already.
  let open = Decimal.max(ZERO, sumDecimals(lines.map(({ net }) => net)).minus(amount_paid));
  if (at_most) open = Decimal.min(open, at_most);
  const paid = lines.map(({ net, price_type }) => {
    let credits = ZERO;
    for (const [index, { price_types }] of wallets.entries()) {
      if (!isPaidType(price_types, price_type)) continue;
      const part = Decimal.max(ZERO, Decimal.min(net.minus(credits), left[index]!, open));
      left[index] = left[index]!.minus(part);
      open = open.minus(part);
      credits = credits.plus(part);
    }
    return credits;
  });
  return { lines: paid, wallets: balances.map((balance, index) => balance.minus(left[index]!)) };
}

export function isPaidType(price_types: readonly string[], price_type: string | null): boolean {
  return price_types.includes('ALL') || (price_type !== null && price_types.includes(price_type));
}

/** Amount that the wallet's credit lots of this kind can pay, in whole minor units and without reserved credits. */
function computeLotBalance(wallet: PrepaidWallet, kind: LotKind, currency: string): Decimal {
  const { conversion_rate, lots, promised, at_ms } = wallet;
  return computePayableMoney(computeFreeCredits(lots, at_ms, promised, kind), conversion_rate, currency);
}

export function computeBalanceBeforeTax(wallet: PrepaidWallet, currency: string): Decimal {
  return computeLotBalance(wallet, 'before_tax', currency);
}

/**
 * Computes what the wallet can pay after taxes. Reserved credits may be in credit lots of either kind, so the result
 * depends on the amount that the wallet has paid before taxes.
 */
function computeBalanceAfterTax(wallet: PrepaidWallet, used: Decimal, currency: string): Decimal {
  const { conversion_rate, lots, at_ms } = wallet;
  const taken = takeFromLots(filterLotsByKind(lots, 'before_tax'), toCredits(used, conversion_rate), at_ms);
  return computeLotBalance({ ...wallet, lots: deductFromLots(lots, taken.parts) }, 'after_tax', currency);
}

type NettedLine = {
  /** Amount after discounts; negative for a credit line. */
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
 * credited amount, all returned credits pay them. Otherwise only a part of the credits pays, in the proportion of the charges to the
 * credited amount. The rest of the credit is then split between credits and money as its charge was paid. Credits from wallets for one kind
 * of price pay charges of that kind only. Returns the credits that pay each line, 0 for lines that credit.
 */
export function nettedCredits(lines: readonly NettedLine[], { currency, wallets }: Netting): Decimal[] {
  let unpaid = lines.map(({ net, returned }) => (returned === null ? Decimal.max(ZERO, net) : ZERO));
  let netted = lines.map(() => ZERO);
  const returned = sumDecimals(lines.map((line) => line.returned ?? ZERO));
  const charged = sumDecimals(unpaid);
  if (returned.lte(0) || charged.isZero()) return netted;
  const credited = sumDecimals(lines.map((line) => (line.returned === null ? ZERO : line.net.negated())));
  let open = charged.gte(credited) ? returned : roundMoney(returned.times(charged).dividedBy(credited), currency);
  for (const { amount, payable_types } of creditsByUse(lines, { currency, wallets })) {
    const payable = unpaid.map((charge, index) => (payable_types.includes(lines[index]!.price_type) ? charge : ZERO));
    const used = Decimal.min(open, amount, sumDecimals(payable));
    const paid = spread(used, payable, currency);
    open = open.minus(used);
    unpaid = unpaid.map((charge, index) => charge.minus(paid[index]!));
    netted = netted.map((credits, index) => credits.plus(paid[index]!));
  }
  return netted;
}

type CreditsOfOneUse = { readonly amount: Decimal; readonly payable_types: readonly (string | null)[] };

/** Groups the returned credits by the price types that they can pay. Credits that can pay the fewest types come first. */
function creditsByUse(lines: readonly NettedLine[], netting: Netting): CreditsOfOneUse[] {
  const charged_types = new Set(lines.filter((line) => line.returned === null).map((line) => line.price_type));
  const uses = new Map<string, CreditsOfOneUse>();
  const crediting = lines.filter(({ returned }) => returned !== null && !returned.isZero());
  for (const [price_type, some] of groupBy(crediting, (line) => line.price_type)) {
    const returned = sumDecimals(some.map((line) => line.returned ?? ZERO));
    const payable_types = [...charged_types].filter((type) => canNet(netting, { from: price_type, to: type }));
    const key = JSON.stringify(payable_types);
    const { amount } = uses.get(key) ?? { amount: ZERO };
    uses.set(key, { amount: amount.plus(returned), payable_types });
  }
  return [...uses.values()].sort((a, b) => a.payable_types.length - b.payable_types.length);
}

/**
 * Whether returned credits of one price type may pay a charge of another. On a draft the two types must be equal. On a final invoice, they
 * may if every wallet to which the credits return also pays charges of the other type. They also may if another wallet has credits for the
 * charge, because netting then only moves credits between wallets.
 */
function canNet(
  { currency, wallets }: Netting,
  { from, to }: { readonly from: string | null; readonly to: string | null },
): boolean {
  if (wallets === undefined) return from === to;
  const paying = wallets.filter(({ price_types }) => isPaidType(price_types, to));
  const holders = wallets.filter(({ price_types }) => isPaidType(price_types, from));
  if (holders.every((holder) => paying.includes(holder))) return true;
  return paying.some((wallet) => computeBalanceBeforeTax(wallet, currency).gt(0));
}
