/**
 * What a movement of credits makes of a wallet (docs/rules/wallets.md, "The ledger"): the record of it, its postings, which add up
 * to 0, and what the wallet holds afterwards, on which the next movement is decided. Nothing else computes a balance.
 */
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import { notAllowed } from '../error.ts';
import type { Milliseconds } from '../time/instant.ts';
import { ACCOUNT_BY_REASON, type Account, type CounterAccount } from './accounts.ts';
import { deductFromLots, filterLotsByKind, type Lot, type LotKind, type LotPart, takeFromLots } from './lots.ts';
import { canKeepPromises, computeFreeCredits, computeUnpromisedCredits, type PromisedCredits } from './promises.ts';
import { toMoney } from './rates.ts';
import type { TransactionReason, WalletTransaction } from './record.ts';

/** What a wallet holds: its lots, and what it owes beyond them. */
export type WalletHolding = {
  readonly conversion_rate: string;
  readonly credit_balance: Decimal;
  readonly owed: Decimal;
  readonly lots: readonly Lot[];
};

/** `id` is that of the record that tells of it. */
type MovementTransaction = {
  readonly id: string;
  readonly transaction_reason: TransactionReason;
  /** In money, where that was said; else what the credits are worth. */
  readonly amount?: Decimal | undefined;
};
export type Movement = MovementTransaction &
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
        readonly promised?: readonly PromisedCredits[] | undefined;
      }
    /** Of these lots, whatever their order. */
    | { readonly kind: 'take'; readonly parts: readonly LotPart[] }
    /** What was taken from these lots comes back to them, to the one that was used last first. */
    | { readonly kind: 'put_back'; readonly parts: readonly LotPart[] }
  );

type Spend = Extract<Movement, { kind: 'spend' }>;

export type Posting = { readonly account: Account; readonly lot_id: string | null; readonly credits: Decimal };
export type MovementResult = {
  readonly record: Pick<
    WalletTransaction,
    'type' | 'amount' | 'credit_amount' | 'credit_balance_before' | 'credit_balance_after'
  >;
  readonly postings: readonly Posting[];
  /** What was taken of which lot, in order. */
  readonly parts: readonly LotPart[];
  readonly holding: WalletHolding;
};

export function computeMovement(holding: WalletHolding, movement: Movement): MovementResult {
  if (movement.kind === 'credit') return creditWallet(holding, movement);
  if (movement.kind === 'put_back') return returnToLots(holding, movement);
  if (movement.kind === 'take') {
    const parts = movement.parts.map(({ lot_id, credits }) => ({ lot_id, credits: credits.negated() }));
    return buildMovement(holding, movement, { parts, counter: ACCOUNT_BY_REASON[movement.transaction_reason] });
  }
  if (!movement.allow_negative) checkAvailable(holding, movement);
  const { parts, lacking } = movement.allow_negative
    ? takeFreeCredits(holding, movement)
    : takeForSpend(holding, movement);
  if (!movement.allow_negative) checkPromises(deductFromLots(holding.lots, parts), movement);
  return buildMovement(holding, movement, {
    parts: parts.map(({ lot_id, credits }) => ({ lot_id, credits: credits.negated() })),
    overdraft: lacking.negated(),
    counter: ACCOUNT_BY_REASON[movement.transaction_reason],
  });
}

function takeForSpend({ lots }: WalletHolding, { credits, at_ms, of_kind }: Spend) {
  return takeFromLots(filterLotsByKind(lots, of_kind), credits, at_ms);
}

/** Who may owe takes what an invoice could, which leaves what is held for others: the rest is owed. */
function takeFreeCredits({ lots }: WalletHolding, { credits, at_ms, promised = [] }: Spend) {
  const free = Decimal.min(credits, computeFreeCredits(lots, at_ms, promised));
  return { parts: takeFromLots(lots, free, at_ms).parts, lacking: credits.minus(free) };
}

function checkAvailable({ lots }: WalletHolding, { credits, at_ms, of_kind, promised = [] }: Spend): void {
  const available = computeUnpromisedCredits(filterLotsByKind(lots, of_kind), at_ms, promised);
  if (credits.gt(available))
    throw notAllowed('the wallet does not have so many credits', {
      field: 'credits',
      credits_available: available.toFixed(),
    });
}

/** Of one that holds nothing there is nothing to ask. */
function checkPromises(left: readonly Lot[], { promised = [] }: Spend): void {
  if (promised.length > 0 && !canKeepPromises(left, promised))
    throw notAllowed('the credits that this would use are held, and the others expire before that ends', {
      field: 'credits',
    });
}

/** What a wallet owes is paid back first. */
function creditWallet(holding: WalletHolding, movement: Movement & { kind: 'credit' }): MovementResult {
  const { id, credits, priority, expiry_ms, created_ms, pays_after_tax } = movement;
  const lot = { id, credit_amount: credits, available: ZERO, priority, expiry_ms, created_ms, pays_after_tax };
  const repaid = Decimal.min(holding.owed, credits);
  const parts = [
    { lot_id: id, credits },
    { lot_id: id, credits: repaid.negated() },
  ];
  const withLot = { ...holding, lots: [...holding.lots, lot] };
  return buildMovement(withLot, movement, {
    parts,
    overdraft: repaid,
    counter: ACCOUNT_BY_REASON[movement.transaction_reason],
  });
}

/** So it is of what comes back; of the lots those repay it that were used first. */
function returnToLots(holding: WalletHolding, movement: Movement & { kind: 'put_back' }): MovementResult {
  let owed = holding.owed;
  const repaid = movement.parts.toReversed().flatMap(({ lot_id, credits }) => {
    const part = Decimal.min(owed, credits);
    owed = owed.minus(part);
    return part.isZero() ? [] : [{ lot_id, credits: part.negated() }];
  });
  const overdraft = holding.owed.minus(owed);
  return buildMovement(holding, movement, { parts: [...movement.parts, ...repaid], overdraft, counter: 'spent' });
}

type BalanceChange = {
  /** More than 0 into the lot, less out of it. */
  readonly parts: readonly LotPart[];
  readonly overdraft?: Decimal;
  readonly counter: CounterAccount;
};

function buildMovement(
  holding: WalletHolding,
  transaction: MovementTransaction,
  { parts, overdraft = ZERO, counter }: BalanceChange,
): MovementResult {
  const total = sumDecimals(parts.map(({ credits }) => credits)).plus(overdraft);
  const postings: Posting[] = [
    ...parts.map((part): Posting => ({ account: 'lot', ...part })),
    { account: 'overdraft' as const, lot_id: null, credits: overdraft },
    { account: counter, lot_id: null, credits: total.negated() },
  ].filter(({ credits }) => !credits.isZero());
  const after = holding.credit_balance.plus(total);
  const amount = transaction.amount ?? toMoney(total.abs(), holding.conversion_rate);
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
      lots: applyParts(holding.lots, parts),
    },
  };
}

function applyParts(lots: readonly Lot[], parts: readonly LotPart[]): Lot[] {
  return deductFromLots(
    lots,
    parts.map(({ lot_id, credits }) => ({ lot_id, credits: credits.negated() })),
  );
}

/** Which credits a debit used, as its metadata says it. */
export function formatConsumed(parts: readonly LotPart[]): Record<string, string> {
  if (parts.length === 0) return {};
  return {
    consumed_credit_tx_ids: parts.map(({ lot_id }) => lot_id).join(','),
    consumed_credits: parts.map(({ credits }) => credits.toFixed()).join(','),
  };
}
