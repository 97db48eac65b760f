/**
 * What a movement of credits makes of a wallet (docs/rules/wallets.md, "The ledger"): the record of it, its postings, which add up
 * to 0, and what the wallet holds afterwards, on which the next movement is decided. Nothing else computes a balance.
 */
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import { notAllowed } from '../error.ts';
import type { Milliseconds } from '../time/instant.ts';
import { ACCOUNT_OF, type Account, type CounterAccount } from './accounts.ts';
import { type Lot, type LotKind, lotsAfter, lotsOfKind, type Part, takeFrom } from './lots.ts';
import { creditsBeside, freeCredits, keepsPromises, type Promised } from './promises.ts';
import { moneyOf } from './rates.ts';
import type { TransactionReason, WalletTransaction } from './record.ts';

/** What a wallet holds: its lots, and what it owes beyond them. */
export type Holding = {
  readonly conversion_rate: string;
  readonly credit_balance: Decimal;
  readonly owed: Decimal;
  readonly lots: readonly Lot[];
};

/** `id` is that of the record that tells of it. */
type Told = {
  readonly id: string;
  readonly transaction_reason: TransactionReason;
  /** In money, where that was said; else what the credits are worth. */
  readonly amount?: Decimal | undefined;
};
export type Movement = Told &
  (
    | (Omit<Lot, 'id' | 'credit_amount' | 'available'> & { readonly kind: 'credit'; readonly credits: Decimal })
    | {
        readonly kind: 'spend';
        readonly credits: Decimal;
        /** Credits that had expired then are not used. */
        readonly at_ms: Milliseconds;
        /** Takes lots of this kind alone; of both where absent. */
        readonly of_kind?: LotKind | undefined;
        readonly allow_negative?: boolean | undefined;
        /** What is held for others, by when it ends: it is left in the wallet. */
        readonly promised?: readonly Promised[] | undefined;
      }
    /** Of these lots, whatever their order. */
    | { readonly kind: 'take'; readonly parts: readonly Part[] }
    /** What was taken from these lots comes back to them, to the one that was used last first. */
    | { readonly kind: 'put_back'; readonly parts: readonly Part[] }
  );

type Spend = Extract<Movement, { kind: 'spend' }>;

export type Posting = { readonly account: Account; readonly lot_id: string | null; readonly credits: Decimal };
export type Decided = {
  readonly record: Pick<
    WalletTransaction,
    'type' | 'amount' | 'credit_amount' | 'credit_balance_before' | 'credit_balance_after'
  >;
  readonly postings: readonly Posting[];
  /** What was taken of which lot, in order. */
  readonly parts: readonly Part[];
  readonly holding: Holding;
};

export function move(holding: Holding, movement: Movement): Decided {
  if (movement.kind === 'credit') return credited(holding, movement);
  if (movement.kind === 'put_back') return putBack(holding, movement);
  if (movement.kind === 'take') {
    const parts = movement.parts.map(({ lot_id, credits }) => ({ lot_id, credits: credits.negated() }));
    return changed(holding, movement, { parts, counter: ACCOUNT_OF[movement.transaction_reason] });
  }
  if (!movement.allow_negative) checkAvailable(holding, movement);
  const { parts, lacking } = movement.allow_negative ? takeFree(holding, movement) : takeOf(holding, movement);
  if (!movement.allow_negative) checkPromises(lotsAfter(holding.lots, parts), movement);
  return changed(holding, movement, {
    parts: parts.map(({ lot_id, credits }) => ({ lot_id, credits: credits.negated() })),
    overdraft: lacking.negated(),
    counter: ACCOUNT_OF[movement.transaction_reason],
  });
}

function takeOf({ lots }: Holding, { credits, at_ms, of_kind }: Spend) {
  return takeFrom(lotsOfKind(lots, of_kind), credits, at_ms);
}

/** Who may owe takes what an invoice could, which leaves what is held for others: the rest is owed. */
function takeFree({ lots }: Holding, { credits, at_ms, promised = [] }: Spend) {
  const free = Decimal.min(credits, freeCredits(lots, at_ms, promised));
  return { parts: takeFrom(lots, free, at_ms).parts, lacking: credits.minus(free) };
}

function checkAvailable({ lots }: Holding, { credits, at_ms, of_kind, promised = [] }: Spend): void {
  const available = creditsBeside(lotsOfKind(lots, of_kind), at_ms, promised);
  if (credits.gt(available))
    throw notAllowed('the wallet does not have so many credits', {
      field: 'credits',
      credits_available: available.toFixed(),
    });
}

/** Of one that holds nothing there is nothing to ask. */
function checkPromises(left: readonly Lot[], { promised = [] }: Spend): void {
  if (promised.length > 0 && !keepsPromises(left, promised))
    throw notAllowed('the credits that this would use are held, and the others expire before that ends', {
      field: 'credits',
    });
}

/** What a wallet owes is paid back first. */
function credited(holding: Holding, movement: Movement & { kind: 'credit' }): Decided {
  const { id, credits, priority, expiry_ms, created_ms, pays_after_tax } = movement;
  const lot = { id, credit_amount: credits, available: ZERO, priority, expiry_ms, created_ms, pays_after_tax };
  const repaid = Decimal.min(holding.owed, credits);
  const parts = [
    { lot_id: id, credits },
    { lot_id: id, credits: repaid.negated() },
  ];
  const withLot = { ...holding, lots: [...holding.lots, lot] };
  return changed(withLot, movement, {
    parts,
    overdraft: repaid,
    counter: ACCOUNT_OF[movement.transaction_reason],
  });
}

/** So it is of what comes back; of the lots those repay it that were used first. */
function putBack(holding: Holding, movement: Movement & { kind: 'put_back' }): Decided {
  let owed = holding.owed;
  const repaid = movement.parts.toReversed().flatMap(({ lot_id, credits }) => {
    const part = Decimal.min(owed, credits);
    owed = owed.minus(part);
    return part.isZero() ? [] : [{ lot_id, credits: part.negated() }];
  });
  const overdraft = holding.owed.minus(owed);
  return changed(holding, movement, { parts: [...movement.parts, ...repaid], overdraft, counter: 'spent' });
}

type Change = {
  /** More than 0 into the lot, less out of it. */
  readonly parts: readonly Part[];
  readonly overdraft?: Decimal;
  readonly counter: CounterAccount;
};

function changed(holding: Holding, told: Told, { parts, overdraft = ZERO, counter }: Change): Decided {
  const total = sumDecimals(parts.map(({ credits }) => credits)).plus(overdraft);
  const postings: Posting[] = [
    ...parts.map((part): Posting => ({ account: 'lot', ...part })),
    { account: 'overdraft' as const, lot_id: null, credits: overdraft },
    { account: counter, lot_id: null, credits: total.negated() },
  ].filter(({ credits }) => !credits.isZero());
  const after = holding.credit_balance.plus(total);
  const amount = told.amount ?? moneyOf(total.abs(), holding.conversion_rate);
  return {
    record: {
      type: total.isNegative() ? 'debit' : 'credit',
      amount: amount.toFixed(),
      credit_amount: total.abs().toFixed(),
      credit_balance_before: holding.credit_balance.toFixed(),
      credit_balance_after: after.toFixed(),
    },
    postings,
    parts: parts
      .filter(({ credits }) => credits.isNegative())
      .map((part) => ({ ...part, credits: part.credits.abs() })),
    holding: {
      ...holding,
      credit_balance: after,
      owed: holding.owed.minus(overdraft),
      lots: withParts(holding.lots, parts),
    },
  };
}

function withParts(lots: readonly Lot[], parts: readonly Part[]): Lot[] {
  return lotsAfter(
    lots,
    parts.map(({ lot_id, credits }) => ({ lot_id, credits: credits.negated() })),
  );
}

/** Which credits a debit used, as its metadata says it. */
export function consumedText(parts: readonly Part[]): Record<string, string> {
  if (parts.length === 0) return {};
  return {
    consumed_credit_tx_ids: parts.map(({ lot_id }) => lot_id).join(','),
    consumed_credits: parts.map(({ credits }) => credits.toFixed()).join(','),
  };
}
