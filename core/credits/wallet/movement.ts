/**
 * Computes a movement of credits (docs/rules/wallets.md, "The ledger"): its record, its postings, which sum to 0, and the holding of the
 * wallet afterwards. The next movement is computed from that holding. No other code computes a balance.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { notAllowed } from '../../foundation/error.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import {
  deductFromLots,
  filterLotsByKind,
  type Lot,
  type LotKind,
  type LotPart,
  takeFromLots,
} from '../../rating/wallet/lots.ts';
import {
  canKeepPromises,
  computeFreeCredits,
  computeUnpromisedCredits,
  type PromisedCredits,
} from '../../rating/wallet/promises.ts';
import { toMoney } from '../../rating/wallet/rates.ts';
import { ACCOUNT_BY_REASON, type Account, type CounterAccount } from './accounts.ts';
import type { TransactionReason, WalletTransaction } from './record.ts';

/** Credits of a wallet: its lots, and `owed`, the overdraft that is not repaid yet. */
export type WalletHolding = {
  readonly conversion_rate: string;
  readonly credit_balance: Decimal;
  readonly owed: Decimal;
  readonly lots: readonly Lot[];
};

/** `id` is the id of the wallet transaction that records the movement. */
type MovementTransaction = {
  readonly id: string;
  readonly transaction_reason: TransactionReason;
  /** Money amount, if the caller gives one. Default: the value of the credits at the conversion rate. */
  readonly amount?: Decimal | undefined;
};
export type Movement = MovementTransaction &
  (
    | (Omit<Lot, 'id' | 'credit_amount' | 'available'> & { readonly kind: 'credit'; readonly credits: Decimal })
    | {
        readonly kind: 'spend';
        readonly credits: Decimal;
        /** Credits that had expired by this instant are not used. */
        readonly at_ms: Milliseconds;
        /** Kind of the lots to use; both kinds if absent. */
        readonly of_kind?: LotKind | undefined;
        readonly allow_negative?: boolean | undefined;
        /** Credits of other holds, with the end of each hold. They are not used. */
        readonly promised?: readonly PromisedCredits[] | undefined;
      }
    /** Takes credits from exactly these lots, in any order. */
    | { readonly kind: 'take'; readonly parts: readonly LotPart[] }
    /** Returns credits to the lots that they were taken from, last used first. */
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
  /** Credits taken from each lot, in order of use. */
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

/** A debit with `allow_negative` takes only the credits that no hold needs, as an invoice does. The rest becomes overdraft. */
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

/** Throws if the remaining credits do not cover the wallet's reservations. */
function checkPromises(left: readonly Lot[], { promised = [] }: Spend): void {
  if (promised.length > 0 && !canKeepPromises(left, promised))
    throw notAllowed('the credits that this would use are held, and the others expire before that ends', {
      field: 'credits',
    });
}

/** Adds credits to the wallet. They repay the debt of the wallet first. */
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

/** Returns credits to their lots. They repay the debt of the wallet first, beginning with the credits of the lots that were used first. */
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
  /** Positive credits go into the lot, negative ones out of it. */
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

/** Lots that a debit used, in the format of its metadata: comma-separated ids and amounts. */
export function formatConsumed(parts: readonly LotPart[]): Record<string, string> {
  if (parts.length === 0) return {};
  return {
    consumed_credit_tx_ids: parts.map(({ lot_id }) => lot_id).join(','),
    consumed_credits: parts.map(({ credits }) => credits.toFixed()).join(','),
  };
}
