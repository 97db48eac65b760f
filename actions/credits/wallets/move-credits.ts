/**
 * Posts every movement of credits: credits and debits of wallets (docs/rules/wallets.md, "The ledger"). It requires the wallet's row lock,
 * reads the lots, lets core decide, and posts the movement; the database derives the balances from the postings. Several movements of one
 * wallet are decided in order, each on the result of the one before it, and are posted in one batch.
 */

import {
  computeMovement,
  formatConsumed,
  type Movement,
  type MovementResult,
  type WalletHolding,
} from '../../../core/credits/wallet/movement.ts';
import { isAutomatic, type MovementKey } from '../../../core/credits/wallet/movement-key.ts';
import type { ReferenceType, TransactionReason, Wallet } from '../../../core/credits/wallet/record.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { alreadyExists, FarthingError } from '../../../core/foundation/error.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { toMoney } from '../../../core/rating/wallet/rates.ts';
import { mapBatched } from '../../../storage/concurrency/batched.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { type LedgerEntry, post } from '../../../storage/models/credits/ledger.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { listLots, toLot, WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { emit } from '../../foundation/emit.ts';
import { checkCreditAlerts } from '../balance-alerts/credit-alerts.ts';

/** Fields of a movement apart from its amounts. */
export type MovementInput = {
  readonly transaction_reason: TransactionReason;
  readonly reference_type: ReferenceType;
  readonly reference_id: string;
  readonly idempotency_key: MovementKey;
  readonly description: string;
  readonly metadata: Record<string, string> | null;
  readonly parent_transaction_id?: string | null | undefined;
  readonly expiry_date?: string | null | undefined;
  readonly priority?: number | null | undefined;
  /** The credit includes tax, so it pays after taxes. Default: it pays before taxes. */
  readonly pays_after_tax?: boolean | undefined;
  readonly author: Author;
};

type WithoutId<M> = M extends unknown
  ? Omit<M, 'id' | 'transaction_reason' | 'created_ms' | 'expiry_ms' | 'priority' | 'pays_after_tax'>
  : never;
export type CreditMovement = MovementInput & { readonly movement: WithoutId<Movement> };

/** `isNew` is false if an earlier request with this key made the movement. */
type AppliedMovement = { readonly transaction: WalletTransactionModel; readonly isNew: boolean };

/** Posts one movement; throws the error if it is refused. */
export async function moveCredits(
  transaction: Transaction,
  wallet: WalletModel,
  entry: CreditMovement,
): Promise<AppliedMovement & { wallet: WalletModel }> {
  const { moved, wallet: after } = await moveAll(transaction, wallet, [entry]);
  const [one] = moved;
  if (one instanceof FarthingError) throw one;
  return { ...one!, wallet: after };
}

/**
 * Posts movements of one wallet, which this transaction has locked. A refused movement yields its error in its
 * position; the others are posted.
 */
export async function moveAll(
  transaction: Transaction,
  wallet: WalletModel,
  requested: readonly CreditMovement[],
  checkNew?: (wallet: WalletModel) => void,
): Promise<{ moved: (AppliedMovement | FarthingError)[]; wallet: WalletModel }> {
  const entries = orderMovements(wallet, requested);
  const known = await findDone(transaction, wallet, entries);
  const decided = decideMovements(await loadHolding(transaction, wallet), entries, { known, wallet, checkNew });
  const fresh = decided.filter((one): one is NewMovement => 'record' in one);
  const added = await recordMovements(transaction, wallet, fresh);
  const made = new Map(added.map((one) => [one.idempotency_key, one]));
  const moved = decided.map((one): AppliedMovement | FarthingError => {
    if (one instanceof FarthingError) return one;
    if ('record' in one) return { transaction: made.get(one.entry.idempotency_key)!, isNew: true };
    return { transaction: one.known ?? made.get(one.key)!, isNew: false };
  });
  const [first] = fresh;
  if (!first) return { moved, wallet };
  const after = await WalletModel.fetch(wallet, wallet.id, { database: transaction });
  const is_filling = fresh.every(({ entry }) => isAutomatic(entry.idempotency_key));
  return { moved, wallet: await checkCreditAlerts(transaction, after, fresh.at(-1)!.entry.author, { is_filling }) };
}

/**
 * Maximum time by which the wallet's last movement may be later than a new one that has waited for the lock. Within this time the new
 * movement gets an instant after the last one. A larger difference comes from another clock, and the new movement retains its own instant.
 */
const WAITS_MS_MAX = 60_000;

/** Gives the movements ascending instants after the wallet's last one, even if a request waited for the lock. */
function orderMovements(wallet: WalletModel, entries: readonly CreditMovement[]): CreditMovement[] {
  let last_ms = Number.NEGATIVE_INFINITY;
  return entries.map((entry) => {
    const author = toLaterInstant(wallet.updated_at, entry.author);
    // Movements of a batch may share a millisecond, because their ids ascend in this order. If each had a millisecond of its own, the
    // instants of a busy wallet would exceed the current time.
    const isEarlier = isBefore(last_ms, author.now);
    last_ms = isEarlier ? last_ms : author.now.getTime();
    return isEarlier ? { ...entry, author: { ...author, now: new Date(last_ms) } } : { ...entry, author };
  });
}

export function toLaterInstant<By extends { readonly now: Date }>(updated_at: string, by: By): By {
  const last_ms = toInstant(updated_at);
  return isBefore(last_ms, by.now) ? { ...by, now: new Date(last_ms + 1) } : by;
}

function isBefore(last_ms: Milliseconds, now: Date): boolean {
  const ahead_ms = last_ms - now.getTime();
  return ahead_ms > 0 && ahead_ms <= WAITS_MS_MAX;
}

type NewMovement = {
  readonly entry: CreditMovement;
  readonly record: Record<string, unknown>;
  readonly decided: MovementResult;
};
type RepeatedMovement = { readonly key: string; readonly known: WalletTransactionModel | undefined };

type MovementContext = {
  readonly known: ReadonlyMap<string, WalletTransactionModel>;
  readonly wallet: WalletModel;
  /** Checks whether a movement that was not made before is allowed. */
  readonly checkNew?: ((wallet: WalletModel) => void) | undefined;
};

function decideMovements(
  holding: WalletHolding,
  entries: readonly CreditMovement[],
  { known, wallet, checkNew }: MovementContext,
): (NewMovement | RepeatedMovement | FarthingError)[] {
  let now = holding;
  const seen = new Map<string, string>();
  return entries.map((entry) => {
    const key = entry.idempotency_key;
    const before = known.get(key);
    try {
      checkSame(entry, wallet, before);
      const taken = before?.credit_amount ?? seen.get(key);
      if (taken !== undefined) {
        // A repeated automatic movement may have another amount; the amount of the first one stays.
        if (entry.reference_type === 'REQUEST' && 'credits' in entry.movement)
          checkAmount(entry.movement.credits, taken);
        return { key, known: before };
      }
      checkNew?.(wallet);
      const { movement, author, expiry_date = null, priority = null, pays_after_tax = false, ...fields } = entry;
      const id = newId('wallet_transaction', author.now.getTime());
      const stored = { id, transaction_reason: fields.transaction_reason };
      const lot = {
        priority,
        expiry_ms: expiry_date === null ? null : toInstant(expiry_date),
        created_ms: author.now.getTime(),
        pays_after_tax,
      };
      const decided = computeMovement(now, { ...movement, ...stored, ...lot } as Movement);
      now = decided.holding;
      seen.set(key, decided.record.credit_amount);
      const isSpent = movement.kind === 'spend' || movement.kind === 'take';
      const metadata = isSpent ? { ...fields.metadata, ...formatConsumed(decided.parts) } : fields.metadata;
      const entryRecord = {
        ...fields,
        ...decided.record,
        ...createdBy(author),
        id,
        expiry_date,
        priority,
        pays_after_tax,
        metadata,
      };
      return { entry, record: entryRecord, decided };
    } catch (error) {
      if (error instanceof FarthingError) return error;
      throw error;
    }
  });
}

/**
 * Finds the wallet transactions of earlier movements with the same keys. The caller holds the wallet's lock, so none of them is still being
 * written.
 */
async function findDone(
  transaction: Transaction,
  wallet: WalletModel,
  entries: readonly CreditMovement[],
): Promise<Map<string, WalletTransactionModel>> {
  const keys = entries.map(({ idempotency_key }) => idempotency_key);
  const known = await WalletTransactionModel.in(wallet, transaction).whereIn('idempotency_key', keys);
  return new Map(known.map((one) => [one.idempotency_key, one]));
}

type MovementReason = Pick<MovementInput, 'transaction_reason'>;

/**
 * Checks that a repeated key has the same movement. If the key belongs to another movement, only this request fails, and the others of the
 * batch succeed.
 */
export function checkSame(entry: MovementReason, wallet: Wallet, before: WalletTransactionModel | undefined): void {
  if (!before) return;
  const isSame = before.wallet_id === wallet.id && before.transaction_reason === entry.transaction_reason;
  if (!isSame)
    throw alreadyExists('this idempotency_key was used for another transaction', {
      field: 'idempotency_key',
      transaction_id: before.id,
    });
}

/** Refuses a repeated request that names another number of credits. */
export function checkAmount(credits: Decimal, before: string): void {
  if (credits.eq(before)) return;
  throw alreadyExists('this idempotency_key was used for another number of credits', {
    field: 'idempotency_key',
    credits: new Decimal(before).toFixed(),
  });
}

/** Restores the wallet as it was after the movement of a repeated request, without later movements. */
export function restoreWallet(
  wallet: WalletModel,
  { credit_balance_after: credits }: WalletTransactionModel,
): WalletModel {
  const balance = toMoney(credits, wallet.conversion_rate).toFixed();
  return Object.assign(Object.create(Object.getPrototypeOf(wallet)), wallet, { credit_balance: credits, balance });
}

export async function loadHolding(transaction: Transaction, wallet: WalletModel): Promise<WalletHolding> {
  const lots = await listLots(wallet, transaction);
  return {
    conversion_rate: wallet.conversion_rate,
    credit_balance: new Decimal(wallet.credit_balance),
    owed: new Decimal(wallet.credits_owed),
    lots: lots.map(toLot),
  };
}

async function recordMovements(
  transaction: Transaction,
  wallet: WalletModel,
  fresh: readonly NewMovement[],
): Promise<WalletTransactionModel[]> {
  if (fresh.length === 0) return [];
  const records = fresh.map((one) => ({
    ...toWalletFields(wallet),
    ...one.record,
    parent_transaction_id: one.entry.parent_transaction_id ?? null,
    transaction_status: 'completed',
  }));
  const conflict = 'this movement of credits was made already';
  const added = await WalletTransactionModel.addAll(wallet, records, { database: transaction, conflict });
  await post(
    transaction,
    wallet,
    fresh.map(({ entry, decided }, index) => buildLedgerEntry(wallet, added[index]!, { entry, decided })),
  );
  const credited = await WalletTransactionModel.byId(
    wallet,
    added.map(({ id }) => id),
    transaction,
  );
  const stored = added.map(({ id }) => credited.get(id)!);
  await mapBatched(transaction, stored, (one) =>
    emit(transaction, 'wallet.transaction.created', { record: one, by: fresh[0]!.entry.author }),
  );
  return stored;
}

export function toWalletFields({ id, customer_id, currency, conversion_rate, topup_conversion_rate }: Wallet) {
  return { wallet_id: id, customer_id, currency, conversion_rate, topup_conversion_rate };
}

type MovementFacts = Pick<MovementInput, 'transaction_reason' | 'reference_type' | 'reference_id' | 'author'>;

/** Builds the ledger entry, which has the key of its wallet transaction. */
export function buildLedgerEntry(
  wallet: Wallet,
  stored: WalletTransactionModel,
  { entry, decided }: { entry: MovementFacts; decided: MovementResult },
): LedgerEntry {
  const { transaction_reason, reference_type, reference_id, author } = entry;
  return {
    id: newId('ledger_transaction', author.now.getTime()),
    idempotency_key: stored.idempotency_key,
    reason: transaction_reason,
    reference_type,
    reference_id,
    occurred_at: author.now.toISOString(),
    lines: decided.postings.map((posting) => ({
      ...posting,
      wallet_id: wallet.id,
      wallet_transaction_id: stored.id,
    })),
  };
}
