/**
 * The clock of an environment that has one (docs/rules/clock.md). Nearly none has: that there is none is remembered for a while,
 * and forgotten when a process is told that one was made (docs/decisions/0010-test-clocks.md). A clock itself is read each time,
 * so that who has seen where it stands finds every process there.
 */
import { LRUCache } from 'lru-cache';
import type { Scope } from '../core/scope.ts';
import { type Milliseconds, toInstant } from '../core/time/instant.ts';
import { KeyedBatchLoader } from './batch-loader.ts';
import { isUnavailable } from './failure.ts';
import { TestClockModel } from './models/test-clock.ts';
import type { Database } from './stores.ts';

export type EnvironmentClock = Pick<TestClockModel, 'id' | 'test_clock_status' | 'target_time'> & {
  /** The instant that it is there. */
  readonly now: Date;
  readonly advanced_from_ms: Milliseconds;
  /** By the machine's clock. */
  readonly advanced_at_ms: Milliseconds;
};

/** Where the process does not hear that one was made. */
const FRESH_MS = 5_000;
/** Of what is asked for all the time: it is read again before it is not known any more. */
const RENEWED_MS = 2_500;

type KnownClock = {
  readonly clock: EnvironmentClock | null;
  readonly seen_ms: Milliseconds;
  /** It is being read again. */
  is_loading?: boolean;
};

const memories = new WeakMap<Database, LRUCache<string, KnownClock>>();
/** How often something was forgotten. */
let changes = 0;

/** Null where the environment goes by the machine's clock, by which it is remembered. `database` is the pool of the process. */
export async function loadClock(
  database: Database,
  scope: Scope,
  machine_ms: Milliseconds = Date.now(),
): Promise<EnvironmentClock | null> {
  const memory = getClockCache(database);
  const known = memory.get(toScopeName(scope));
  if (known?.clock === null && machine_ms - known.seen_ms < FRESH_MS) return null;
  try {
    return await read(database, scope, machine_ms);
  } catch (error) {
    // Who is known goes on sending events while Postgres is away.
    if (known && isUnavailable(error)) return known.clock;
    throw error;
  }
}

async function read(database: Database, scope: Scope, machine_ms: Milliseconds): Promise<EnvironmentClock | null> {
  const key = toScopeName(scope);
  const seen_changes = changes;
  const clock = await READ.load(database, scope, key);
  // What was read before a change is not kept behind it.
  if (changes === seen_changes) getClockCache(database).set(key, { clock, seen_ms: machine_ms });
  return clock;
}

/** Whether it is known, without a question, that the environment goes by the machine's clock. It is asked again in time. */
export function isByTheMachine(database: Database, scope: Scope, machine_ms: Milliseconds): boolean {
  const known = memories.get(database)?.get(toScopeName(scope));
  if (known?.clock !== null || machine_ms - known.seen_ms >= FRESH_MS) return false;
  if (machine_ms - known.seen_ms >= RENEWED_MS && !known.is_loading) {
    known.is_loading = true;
    // Where it fails, whoever asks when this is not known any more is told why.
    read(database, scope, machine_ms).catch(() => undefined);
  }
  return true;
}

function toScopeName({ tenant_id, environment_id }: Scope): string {
  return `${tenant_id} ${environment_id}`;
}

/** After a clock was made, somewhere. */
export function clearClocks(database: Database): void {
  changes++;
  memories.get(database)?.clear();
}

/** Where work that goes on beside requests has its instants from: the clock of the environment, or that of the machine. */
export async function loadNow(database: Database, scope: Scope, machine: () => Date): Promise<() => Date> {
  const clock = await loadClock(database, scope);
  return clock ? () => clock.now : machine;
}

/** Whoever asks at one time, for one environment, is answered together: each usage of many invoices goes by the clock. */
const READ = new KeyedBatchLoader<Database, Scope, EnvironmentClock | null>(async (database, scopes) => {
  const clock = await readClock(database, scopes[0]!);
  return scopes.map(() => clock);
});

async function readClock(database: Database, scope: Scope): Promise<EnvironmentClock | null> {
  const [row] = await TestClockModel.in(scope, database).limit(1);
  if (!row) return null;
  const { id, test_clock_status, target_time, frozen_time, advanced_from, advanced_at } = row;
  return {
    id,
    test_clock_status,
    target_time,
    now: new Date(toInstant(frozen_time)),
    advanced_from_ms: toInstant(advanced_from),
    advanced_at_ms: toInstant(advanced_at),
  };
}

function getClockCache(database: Database): LRUCache<string, KnownClock> {
  const known = memories.get(database) ?? new LRUCache({ max: 10_000 });
  memories.set(database, known);
  return known;
}
