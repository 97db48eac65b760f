/**
 * Batches concurrent operations on one pool. An operation is repeated if the available quantity has to be gathered first, or if another
 * operation of the batch created or ended its reservation. A refusal is retried if usage may have been counted twice while it was being
 * written.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../core/foundation/error.ts';
import { KeyedBatchLoader } from '../../storage/concurrency/batch-loader.ts';
import { currentRequestContext, runAs } from '../../storage/foundation/request-context.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import type { ReservationPool } from '../../storage/models/reservations/reservation.ts';
import {
  type ReservationOp,
  type ReservationOutcome,
  type ReservationPoolHandler,
  runReservationBatch,
} from './reservation-batch.ts';

export type ReservationCounter<Gathered, Room> = {
  readonly pool: ReservationPool;
  /** Runs before the pool is locked, because it takes longer than a lock may last. */
  gather(now: Date): Promise<Gathered>;
  /** Creates the handler of a pool. Without gathered data the handler cannot decide whether enough is available. */
  createPool(gathered: Gathered | null): ReservationPoolHandler<Room>;
  /**
   * Sends the events of committed reservations that are still unsent, for example after a crash. When their log offsets are stored, it is
   * certain whether their usage is counted.
   */
  mend?(): Promise<void>;
};

type ReservationCaller = ReturnType<typeof currentRequestContext>;
type ReservationCall = {
  readonly counter: ReservationCounter<unknown, unknown>;
  readonly op: ReservationOp;
  readonly caller: ReservationCaller;
  /** Number of earlier attempts. */
  readonly tries: number;
};
type ReservationAnswer<Room> = Exclude<ReservationOutcome<Room>, { kind: 'again' }>;

const BATCHES = new KeyedBatchLoader<Database, ReservationCall, ReservationOutcome<unknown> | FarthingError>(
  (postgres, call) => runAsCaller(postgres, call),
  { batchMax: 500, restMax_ms: 5 },
);

/** Maximum number of attempts after a doubtful refusal. Usage in flight becomes certain within milliseconds, and 12 × 15 ms is enough. */
const TRIES = 12;
const PAUSE_MS = 15;
/** Number of earlier attempts after which unsent events of committed reservations are sent. Running processes have sent theirs by then. */
const MEND_AT = 4;
/** Maximum number of attempts that only improve the returned numbers, because the verdict is certain. */
const TRIES_FOR_NUMBERS = 6;

/** Submits an operation, which resolves with its own answer; retries and failures of others do not affect it. */
export async function submitReservation<Gathered, Room>(
  { postgres }: Stores,
  counter: ReservationCounter<Gathered, Room>,
  op: ReservationOp,
): Promise<ReservationAnswer<Room>> {
  const { tenant_id, environment_id, customer_id, subject_id } = counter.pool;
  const caller = currentRequestContext();
  const key = JSON.stringify([tenant_id, environment_id, customer_id, subject_id, caller?.clock?.now ?? null]);
  for (let tries = 0; ; tries++) {
    if (tries > 1) await wait(PAUSE_MS);
    const outcome = await BATCHES.load(postgres, { counter, op, caller, tries } as unknown as ReservationCall, key);
    if (outcome instanceof FarthingError) throw outcome;
    if (outcome.kind === 'again' || tries < getTriesMax(op, outcome)) continue;
    if (outcome.kind === 'refused') throw outcome.error;
    return outcome as ReservationAnswer<Room>;
  }
}

async function runAsCaller(
  postgres: Database,
  calls: readonly ReservationCall[],
): Promise<(ReservationOutcome<unknown> | FarthingError)[]> {
  const { caller } = calls[0]!;
  const work = () => runIndividuallyOnConflict(postgres, calls);
  // The written records contain their authors.
  return caller ? runAs({ ...caller, request_id: null }, work) : work();
}

async function runIndividuallyOnConflict(
  postgres: Database,
  calls: readonly ReservationCall[],
): Promise<(ReservationOutcome<unknown> | FarthingError)[]> {
  try {
    return await runBatch(postgres, calls);
  } catch (error) {
    if (!(error instanceof FarthingError) || error.code !== 'already_exists') throw error;
    if (calls.length === 1) return [error];
    // An operation conflicts with a concurrent request with the same key. Each operation is repeated alone, so that only the conflicting
    // one fails.
    const alone: (ReservationOutcome<unknown> | FarthingError)[] = [];
    for (const one of calls) alone.push(...(await runIndividuallyOnConflict(postgres, [one])));
    return alone;
  }
}

async function runBatch(postgres: Database, calls: readonly ReservationCall[]): Promise<ReservationOutcome<unknown>[]> {
  const { counter } = calls[0]!;
  const ops = calls.map(({ op }) => op);
  const needsRoom = calls.some(({ op, tries }) => tries > 0 || op.kind === 'check');
  // This call is not awaited: if it fails, the job for due reservations sends the commits.
  if (calls.some(({ tries }) => tries === MEND_AT)) counter.mend?.().catch(() => undefined);
  const now = new Date(Math.max(...ops.map((op) => op.now)));
  const gathered = needsRoom ? await counter.gather(now) : null;
  return runReservationBatch(postgres, counter.createPool(gathered), ops);
}

/** Returns the maximum number of attempts. A reservation that was made is not attempted again; a check is, for better numbers. */
function getTriesMax(op: ReservationOp, outcome: ReservationAnswer<unknown>): number {
  if (outcome.kind === 'refused') return outcome.is_doubtful ? TRIES : 0;
  if (outcome.kind !== 'answered') return 0;
  if (!outcome.verdict.is_doubtful) return outcome.verdict.is_unclear ? TRIES_FOR_NUMBERS : 0;
  if (!outcome.verdict.allowed) return TRIES;
  return op.kind === 'check' && op.hold === null ? TRIES_FOR_NUMBERS : 0;
}
