/**
 * Whoever asks at one time about one pool is answered together, and again where it is worth it: where room has to be gathered first, where another of them
 * has just made or ended the same, and where what was refused may have been counted twice while usage was being written.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../core/error.ts';
import { KeyedBatchLoader } from '../../storage/batch-loader.ts';
import type { ReservationPool } from '../../storage/models/reservation.ts';
import { currentRequestContext, runAs } from '../../storage/request-context.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import {
  type ReservationOp,
  type ReservationOutcome,
  type ReservationPoolHandler,
  runReservationBatch,
} from './reservation-batch.ts';

/** A desk, and what there is room for at it. */
export type ReservationCounter<Gathered, Looked> = {
  readonly pool: ReservationPool;
  /** Read before the pool is held: it takes longer than anybody may hold it. */
  gather(now: Date): Promise<Gathered>;
  /** Without what was gathered it knows no room. */
  createPool(gathered: Gathered | null): ReservationPoolHandler<Looked>;
  /** Does what somebody has left who has ended between two steps, so that what is in doubt becomes clear. */
  mend?(): Promise<void>;
};

type ReservationCaller = ReturnType<typeof currentRequestContext>;
type ReservationCall = {
  readonly counter: ReservationCounter<unknown, unknown>;
  readonly op: ReservationOp;
  readonly caller: ReservationCaller;
  /** How often it was asked before. */
  readonly tries: number;
};
type ReservationAnswer<Looked> = Exclude<ReservationOutcome<Looked>, { kind: 'again' }>;

const BATCHES = new KeyedBatchLoader<Database, ReservationCall, ReservationOutcome<unknown> | FarthingError>(
  (postgres, call) => runAsCaller(postgres, call),
  { batchMax: 500, restMax_ms: 5 },
);

/** Usage that is being written is there, or not, within milliseconds; who is refused meanwhile waits no longer than that. */
const TRIES = 12;
const PAUSE_MS = 15;
/** Whoever is alive has done it by then. */
const MEND_AT = 4;
/** For numbers alone, where the answer is known. */
const TRIES_FOR_NUMBERS = 6;

/** Each is answered as soon as its own answer is clear: who waits, or what fails then, is nothing to those who were answered. */
export async function submitReservation<Gathered, Looked>(
  { postgres }: Stores,
  counter: ReservationCounter<Gathered, Looked>,
  op: ReservationOp,
): Promise<ReservationAnswer<Looked>> {
  const { tenant_id, environment_id, customer_id, subject_id } = counter.pool;
  const caller = currentRequestContext();
  const key = JSON.stringify([tenant_id, environment_id, customer_id, subject_id, caller?.clock?.now ?? null]);
  for (let tries = 0; ; tries++) {
    if (tries > 1) await wait(PAUSE_MS);
    const outcome = await BATCHES.load(postgres, { counter, op, caller, tries } as unknown as ReservationCall, key);
    if (outcome instanceof FarthingError) throw outcome;
    if (outcome.kind === 'again' || tries < getTriesMax(op, outcome)) continue;
    if (outcome.kind === 'refused') throw outcome.error;
    return outcome as ReservationAnswer<Looked>;
  }
}

async function runAsCaller(
  postgres: Database,
  calls: readonly ReservationCall[],
): Promise<(ReservationOutcome<unknown> | FarthingError)[]> {
  const { caller } = calls[0]!;
  const work = () => runIndividuallyOnConflict(postgres, calls);
  // What they write says itself whose it is.
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
    // A key that somebody has used elsewhere at this moment is the mistake of one of them.
    const alone: (ReservationOutcome<unknown> | FarthingError)[] = [];
    for (const one of calls) alone.push(...(await runIndividuallyOnConflict(postgres, [one])));
    return alone;
  }
}

async function runBatch(postgres: Database, calls: readonly ReservationCall[]): Promise<ReservationOutcome<unknown>[]> {
  const { counter } = calls[0]!;
  const ops = calls.map(({ op }) => op);
  const needsRoom = calls.some(({ op, tries }) => tries > 0 || op.kind === 'check');
  // Nobody waits for it, and where it fails the job does it.
  if (calls.some(({ tries }) => tries === MEND_AT)) counter.mend?.().catch(() => undefined);
  const now = new Date(Math.max(...ops.map((op) => op.now)));
  const gathered = needsRoom ? await counter.gather(now) : null;
  return runReservationBatch(postgres, counter.createPool(gathered), ops);
}

/** What is held is held: only a question is asked again for its numbers. */
function getTriesMax(op: ReservationOp, outcome: ReservationAnswer<unknown>): number {
  if (outcome.kind === 'refused') return outcome.is_doubtful ? TRIES : 0;
  if (outcome.kind !== 'told') return 0;
  if (!outcome.verdict.is_doubtful) return outcome.verdict.is_unclear ? TRIES_FOR_NUMBERS : 0;
  if (!outcome.verdict.allowed) return TRIES;
  return op.kind === 'check' && op.hold === null ? TRIES_FOR_NUMBERS : 0;
}
