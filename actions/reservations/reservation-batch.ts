/**
 * Concurrent checks, commits and releases of one pool share a transaction. The pool is locked once, each operation is decided on the result
 * of the one before it (core/credits/reservations/decide.ts), and all changes are written in one batch. The pool handler, for a feature or
 * a wallet, defines the pool and its room: the quantity that may still be reserved.
 */

import {
  type DecideVerdict,
  decideCheck,
  decideCommit,
  decideExpiry,
  decideRelease,
  type ReservationCheck,
  type ReservationCommit,
  type ReservationDecision,
  type ReservationEnding,
  type ReservationExpiry,
  type ReservationPoolState,
  type ReservationRelease,
} from '../../core/credits/reservations/decide.ts';
import type { CommittedEvents } from '../../core/credits/reservations/event.ts';
import type { ReservationVerdict } from '../../core/credits/reservations/room.ts';
import { Decimal, ZERO } from '../../core/foundation/decimal.ts';
import { alreadyExists, errorRecord, type FarthingError, notFound } from '../../core/foundation/error.ts';
import { type Author, createdBy, updatedBy } from '../../core/foundation/stamp.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Database, Transaction } from '../../storage/foundation/stores.ts';
import { lockClock } from '../../storage/models/foundation/lock-clock.ts';
import {
  type EndOf,
  endReservations,
  type HeldAmount,
  loadHeld,
  loadHeldAfterExpiry,
  ReservationModel,
  type ReservationPool,
} from '../../storage/models/reservations/reservation.ts';
import { emit } from '../foundation/emit.ts';

type OpAuthor = { readonly author: Author };
/** Events of a committed feature reservation; null for a reservation of credits, which debits the wallet. */
type OpEvents = { readonly events: (CommittedEvents & { readonly at: string }) | null };
/** Error that prevents the charge. */
type OpRefusal = { readonly refusal: FarthingError | null };
export type ReservationOp =
  | (ReservationCheck & OpAuthor)
  | (ReservationCommit & OpAuthor & OpEvents)
  | (ReservationRelease & OpAuthor)
  | (ReservationExpiry & OpAuthor & OpEvents & OpRefusal);

/** Result of reading the pool. `promised` (credits reserved until their expiry) is set for a wallet only. */
type PoolRoom<Room> = {
  readonly computeVerdict: DecideVerdict;
  readonly room: Room | null;
  readonly promised?: ReservationPoolState['promised'];
};

export type ReservationPoolHandler<Room> = {
  readonly pool: ReservationPool;
  readonly subject: { readonly feature_id: string } | { readonly wallet_id: string };
  /** Locks the pool until the transaction ends. */
  lock(transaction: Transaction, now: Date): Promise<void>;
  /**
   * Reads how much of the feature or wallet is still available; `room` is null if `gather` was not called before. A batch that can change
   * reservations reads under the pool's lock, a batch of mere checks from one snapshot.
   */
  readRoom(transaction: Transaction, now: Date): Promise<PoolRoom<Room>>;
  /** Posts the debit of each commit in the same transaction. Returns the ids of the debits by reservation id. */
  postCommits?(transaction: Transaction, commits: readonly EndedReservation[]): Promise<ReadonlyMap<string, string>>;
};
export type EndedReservation = {
  readonly reservation: ReservationModel;
  readonly op: ReservationOp;
  readonly changes: ReservationEnding;
};

export type CheckOutcome<Room> = {
  readonly kind: 'answered';
  readonly verdict: ReservationVerdict;
  /** Sum of all reservations, including this one. */
  readonly held: Decimal;
  readonly room: Room | null;
  readonly reservation: ReservationModel | null;
};
export type ReservationOutcome<Room> =
  | CheckOutcome<Room>
  | { readonly kind: 'ended'; readonly reservation: ReservationModel }
  | { readonly kind: 'refused'; readonly error: FarthingError; readonly is_doubtful: boolean }
  /** The operation must be repeated: the room was not gathered, or another operation of the batch wrote its reservation. */
  | { readonly kind: 'again' };

export function runReservationBatch<Room>(
  postgres: Database,
  poolHandler: ReservationPoolHandler<Room>,
  ops: readonly ReservationOp[],
): Promise<ReservationOutcome<Room>[]> {
  const isAsking = ops.every((op) => op.kind === 'check' && op.hold === null);
  const now = new Date(Math.max(...ops.map((op) => op.now)));
  if (isAsking)
    return postgres.transaction(
      async (transaction) =>
        computeOutcomes(transaction, poolHandler, {
          ops,
          now,
          held: await loadHeld(transaction, poolHandler.pool, now),
        }),
      { isolationLevel: 'repeatable read', readOnly: true },
    );
  const ends = ops.flatMap((op) => (op.kind === 'check' ? [] : { id: op.id, at: formatMs(op.now) }));
  return postgres.transaction(async (transaction) => {
    await lockClock(transaction);
    await poolHandler.lock(transaction, now);
    return computeOutcomes(transaction, poolHandler, {
      ops,
      now,
      held: await loadHeldAfterExpiry(transaction, poolHandler.pool, now, ends),
    });
  });
}

async function computeOutcomes<Room>(
  transaction: Transaction,
  poolHandler: ReservationPoolHandler<Room>,
  { ops, held, now }: { ops: readonly ReservationOp[]; held: HeldAmount; now: Date },
): Promise<ReservationOutcome<Room>[]> {
  const known = await loadKnown(transaction, poolHandler.pool, ops);
  const { computeVerdict, room, promised = [] } = await poolHandler.readRoom(transaction, now);
  const decided = decideOps(ops, {
    state: { ...held, used: ZERO, promised },
    computeVerdict,
    known,
    pool: poolHandler.pool,
  });
  const written = await writeDecisions(transaction, poolHandler, decided);
  return decided.map((one, index) => toOutcome(one, { room, written: written.get(index) ?? null }));
}

type KnownReservations = {
  readonly byId: Map<string, ReservationModel>;
  readonly byKey: Map<string, ReservationModel | null>;
};

async function loadKnown(
  transaction: Transaction,
  pool: ReservationPool,
  ops: readonly ReservationOp[],
): Promise<KnownReservations> {
  const ids = ops.flatMap((op) => (op.kind === 'check' ? [] : op.id));
  const keys = ops.flatMap((op) => (op.kind === 'check' ? (op.hold?.idempotency_key ?? []) : []));
  const byId = await ReservationModel.byId(pool, ids, transaction);
  const found = keys.length === 0 ? [] : await ReservationModel.in(pool, transaction).whereIn('idempotency_key', keys);
  return { byId, byKey: new Map(found.map((one) => [one.idempotency_key!, one])) };
}

/** An operation with its decision; `before` is the existing reservation with the idempotency key of the operation. */
type DecidedOp =
  | (ReservationDecision & { readonly op: ReservationOp; readonly of?: ReservationModel; readonly isFresh?: boolean })
  | {
      readonly kind: 'known';
      readonly op: ReservationOp;
      readonly state: ReservationPoolState;
      readonly before: ReservationModel;
    }
  | { readonly kind: 'repeated'; readonly op: ReservationOp; readonly state: ReservationPoolState };

type DecisionContext = {
  readonly state: ReservationPoolState;
  readonly computeVerdict: DecideVerdict;
  readonly known: KnownReservations;
  readonly pool: ReservationPool;
};

function decideOps(
  ops: readonly ReservationOp[],
  { state: before, computeVerdict, known, pool }: DecisionContext,
): DecidedOp[] {
  let state = before;
  const keys = new Set<string>();
  const endedNow = new Set<string>();
  return ops.map((op): DecidedOp => {
    const one = decideOne();
    state = one.state;
    return one;

    function decideOne(): DecidedOp {
      if (op.kind === 'check') {
        const key = op.hold?.idempotency_key ?? null;
        const existing = key === null ? undefined : known.byKey.get(key);
        if (existing) return checkSameKey(existing, pool, op, state);
        if (key !== null && keys.has(key)) return { kind: 'repeated', op, state };
        const decided = decideCheck(op, state, computeVerdict);
        if (decided.kind === 'hold' && key !== null) keys.add(key);
        return { ...decided, op };
      }
      const of = known.byId.get(op.id);
      if (!of) return { kind: 'refused', error: notFound('reservation', op.id), is_doubtful: false, state, op };
      const about = { of, quantity_held: new Decimal(of.quantity) };
      const decided = decideEnd(op, about, { state, computeVerdict });
      const isFresh = endedNow.has(op.id);
      if (decided.kind === 'end') {
        known.byId.set(op.id, mergeChanges(of, decided.changes));
        endedNow.add(op.id);
      }
      return { ...decided, op, of, isFresh };
    }
  });
}

function decideEnd(
  op: Exclude<ReservationOp, { kind: 'check' }>,
  about: { of: ReservationModel; quantity_held: Decimal },
  { state, computeVerdict }: Pick<DecisionContext, 'state' | 'computeVerdict'>,
): ReservationDecision {
  if (op.kind === 'commit') return decideCommit(op, about, { state, decideVerdict: computeVerdict });
  return op.kind === 'release' ? decideRelease(op, about, state) : decideExpiry(op, about, state);
}

/** Refuses a key that was used for another reservation. */
function checkSameKey(
  existing: ReservationModel,
  pool: ReservationPool,
  op: ReservationCheck & OpAuthor,
  state: ReservationPoolState,
): DecidedOp {
  const isSame =
    existing.customer_id === pool.customer_id &&
    existing.subject_id === pool.subject_id &&
    op.quantity.eq(existing.quantity);
  if (isSame) return { kind: 'known', op, state, before: existing };
  const error = alreadyExists('this idempotency_key was used for another reservation', {
    field: 'idempotency_key',
    reservation_id: existing.id,
  });
  return { kind: 'refused', error, is_doubtful: false, state, op };
}

function mergeChanges(of: ReservationModel, changes: ReservationEnding): ReservationModel {
  return Object.assign(Object.create(Object.getPrototypeOf(of)), of, changes);
}

/** Returns the written reservations by the index of their operation. */
async function writeDecisions<Room>(
  transaction: Transaction,
  poolHandler: ReservationPoolHandler<Room>,
  decided: readonly DecidedOp[],
): Promise<Map<number, ReservationModel>> {
  const placed = decided.map((one, index) => ({ one, index }));
  const written = new Map<number, ReservationModel>();
  const holds = placed.flatMap(({ one, index }) => (one.kind === 'hold' ? [{ one, index }] : []));
  if (holds.length > 0) {
    const records = holds.map(({ one: { op, record } }) => ({
      id: newId('reservation', op.now),
      customer_id: poolHandler.pool.customer_id,
      ...poolHandler.subject,
      ...record,
      ...createdBy(op.author),
    }));
    const conflict = 'this idempotency_key was used for another reservation';
    const added = await ReservationModel.addAll(poolHandler.pool, records, { database: transaction, conflict });
    for (const [at, { index }] of holds.entries()) written.set(index, added[at]!);
  }
  const ends = placed.flatMap(({ one, index }) => (one.kind === 'end' ? [{ one, index }] : []));
  const ended = ends.map(({ one }): EndedReservation => ({ reservation: one.of!, op: one.op, changes: one.changes }));
  const commits = ended.filter(({ changes }) => changes.reservation_status === 'committed');
  const debits = (commits.length > 0 && (await poolHandler.postCommits?.(transaction, commits))) || NONE;
  const after = await endReservations(
    transaction,
    poolHandler.pool,
    ended.map((one) => buildEnd(one, debits)),
  );
  for (const { one, index } of ends) written.set(index, after.get(one.of!.id)!);
  for (const { op, reservation } of ended) await emitFailedCharge(transaction, op, after.get(reservation.id)!);
  return written;
}

/** Emits an event for a failed charge: the caller expects the charge and made no request that could return its error. */
async function emitFailedCharge(transaction: Transaction, op: ReservationOp, record: ReservationModel): Promise<void> {
  if (op.kind !== 'expire' || !op.refusal || record.reservation_status !== 'expired') return;
  const { code, message, details } = errorRecord(op.refusal);
  const also = { error: { code, message, details } };
  await emit(transaction, 'reservation.charge_failed', { record, by: op.author, also });
}

const NONE: ReadonlyMap<string, string> = new Map();

function buildEnd({ reservation, op, changes }: EndedReservation, debits: ReadonlyMap<string, string>): EndOf {
  const events = 'events' in op ? op.events : null;
  return {
    id: reservation.id,
    ...changes,
    event_text: events?.event_text ?? null,
    event_count: events?.event_count ?? 0,
    event_at: events?.event_text ? events.at : null,
    is_sent: !events?.event_text,
    wallet_transaction_id: debits.get(reservation.id) ?? null,
    ...updatedBy(op.author),
  };
}

function toOutcome<Room>(
  one: DecidedOp,
  { room, written }: { room: Room | null; written: ReservationModel | null },
): ReservationOutcome<Room> {
  // A repeated operation gathers the room first, or finds the reservation that another operation of this batch wrote.
  const isAgain = one.kind === 'needs room' || one.kind === 'repeated' || (one.kind === 'as it is' && one.isFresh);
  if (isAgain) return { kind: 'again' };
  if (one.kind === 'refused') return one;
  if (one.kind === 'end') return { kind: 'ended', reservation: written! };
  if (one.kind === 'as it is') return { kind: 'ended', reservation: one.of! };
  const { held } = one.state;
  if (one.kind === 'known') {
    const verdict = { allowed: true, reason: one.before.reason, is_doubtful: false };
    return { kind: 'answered', verdict, held, room, reservation: one.before };
  }
  return { kind: 'answered', verdict: one.verdict, held, room, reservation: written };
}
