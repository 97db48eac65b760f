/**
 * Whoever asks at one time about one pool is answered together, and again where it is worth it: where room has to be gathered first, where another of them
 * has just made or ended the same, and where what was refused may have been counted twice while usage was being written.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { FarthingError } from '../../core/error.ts';
import { currentCaller, onBehalfOf } from '../../storage/caller.ts';
import type { Pool } from '../../storage/models/reservation.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { TogetherByKey } from '../../storage/together.ts';
import { atDesk, type Desk, type Op, type Outcome } from './pool-desk.ts';

/** A desk, and what there is room for at it. */
export type Counter<Gathered, Looked> = {
  readonly pool: Pool;
  /** Read before the pool is held: it takes longer than anybody may hold it. */
  gather(now: Date): Promise<Gathered>;
  /** Without what was gathered it knows no room. */
  desk(gathered: Gathered | null): Desk<Looked>;
  /** Does what somebody has left who has ended between two steps, so that what is in doubt becomes clear. */
  mend?(): Promise<void>;
};

type Caller = ReturnType<typeof currentCaller>;
type Asked = {
  readonly counter: Counter<unknown, unknown>;
  readonly op: Op;
  readonly caller: Caller;
  /** How often it was asked before. */
  readonly tries: number;
};
type Answer<Looked> = Exclude<Outcome<Looked>, { kind: 'again' }>;

const TOGETHER = new TogetherByKey<Database, Asked, Outcome<unknown> | FarthingError>(
  (postgres, asked) => answerTogether(postgres, asked),
  { atOnceMax: 500, restMax_ms: 5 },
);

/** Usage that is being written is there, or not, within milliseconds; who is refused meanwhile waits no longer than that. */
const TRIES = 12;
const PAUSE_MS = 15;
/** Whoever is alive has done it by then. */
const MEND_AT = 4;
/** For numbers alone, where the answer is known. */
const TRIES_FOR_NUMBERS = 6;

/** Each is answered as soon as its own answer is clear: who waits, or what fails then, is nothing to those who were answered. */
export async function askDesk<Gathered, Looked>(
  { postgres }: Stores,
  counter: Counter<Gathered, Looked>,
  op: Op,
): Promise<Answer<Looked>> {
  const { tenant_id, environment_id, customer_id, subject_id } = counter.pool;
  const caller = currentCaller();
  const key = JSON.stringify([tenant_id, environment_id, customer_id, subject_id, caller?.clock?.now ?? null]);
  for (let tries = 0; ; tries++) {
    if (tries > 1) await wait(PAUSE_MS);
    const outcome = await TOGETHER.ask(postgres, { counter, op, caller, tries } as unknown as Asked, key);
    if (outcome instanceof FarthingError) throw outcome;
    if (outcome.kind === 'again' || tries < triesFor(op, outcome)) continue;
    if (outcome.kind === 'refused') throw outcome.error;
    return outcome as Answer<Looked>;
  }
}

async function answerTogether(
  postgres: Database,
  asked: readonly Asked[],
): Promise<(Outcome<unknown> | FarthingError)[]> {
  const { caller } = asked[0]!;
  const work = () => answerAll(postgres, asked);
  // What they write says itself whose it is.
  return caller ? onBehalfOf({ ...caller, request_id: null }, work) : work();
}

async function answerAll(postgres: Database, asked: readonly Asked[]): Promise<(Outcome<unknown> | FarthingError)[]> {
  try {
    return await answerOnce(postgres, asked);
  } catch (error) {
    if (!(error instanceof FarthingError) || error.code !== 'already_exists') throw error;
    if (asked.length === 1) return [error];
    // A key that somebody has used elsewhere at this moment is the mistake of one of them.
    const alone: (Outcome<unknown> | FarthingError)[] = [];
    for (const one of asked) alone.push(...(await answerAll(postgres, [one])));
    return alone;
  }
}

async function answerOnce(postgres: Database, asked: readonly Asked[]): Promise<Outcome<unknown>[]> {
  const { counter } = asked[0]!;
  const ops = asked.map(({ op }) => op);
  const isRoomAsked = asked.some(({ op, tries }) => tries > 0 || op.kind === 'check');
  // Nobody waits for it, and where it fails the job does it.
  if (asked.some(({ tries }) => tries === MEND_AT)) counter.mend?.().catch(() => undefined);
  const now = new Date(Math.max(...ops.map((op) => op.now)));
  const gathered = isRoomAsked ? await counter.gather(now) : null;
  return atDesk(postgres, counter.desk(gathered), ops);
}

/** What is held is held: only a question is asked again for its numbers. */
function triesFor(op: Op, outcome: Answer<unknown>): number {
  if (outcome.kind === 'refused') return outcome.is_doubtful ? TRIES : 0;
  if (outcome.kind !== 'told') return 0;
  if (!outcome.verdict.is_doubtful) return outcome.verdict.is_unclear ? TRIES_FOR_NUMBERS : 0;
  if (!outcome.verdict.allowed) return TRIES;
  return op.kind === 'check' && op.hold === null ? TRIES_FOR_NUMBERS : 0;
}
