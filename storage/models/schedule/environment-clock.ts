/**
 * The test clock of an environment, if it has one (docs/rules/clock.md). Few environments have one, so its absence is cached for a
 * while. The entry is dropped when a process is notified that a clock was created (docs/decisions/0010-test-clocks.md). The clock
 * itself is read each time, so that all processes use its latest instant.
 */
import type { LRUCache } from 'lru-cache';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { KeyedBatchLoader } from '../../concurrency/batch-loader.ts';
import { isUnavailable } from '../../foundation/failure.ts';
import { createLru } from '../../foundation/lru.ts';
import type { Database } from '../../foundation/stores.ts';
import { TestClockModel } from './test-clock.ts';

export type EnvironmentClock = Pick<TestClockModel, 'id' | 'test_clock_status' | 'target_time'> & {
  /** Current instant of the clock. */
  readonly now: Date;
  readonly advanced_from_ms: Milliseconds;
  /** Instant of the last advance, by the machine's clock. */
  readonly advanced_at_ms: Milliseconds;
};

/** Limits the age of an entry, in case the process misses the notification that a clock was created. */
const FRESH_MS = 5_000;
/** Age at which an entry in use is read again, before it is stale. */
const RENEWED_MS = 2_500;

type KnownClock = {
  readonly clock: EnvironmentClock | null;
  readonly seen_ms: Milliseconds;
  /** True while a refresh is in progress. */
  is_loading?: boolean;
};

const memories = new WeakMap<Database, LRUCache<string, KnownClock>>();
/** Number of invalidations. */
let changes = 0;

/**
 * Loads the test clock of an environment; null if it has none. The cached absence ages by the machine's clock.
 * `database` is the pool of the process.
 */
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
    // While Postgres is unavailable, the cached clock is used, so that known environments can continue to send events.
    if (known && isUnavailable(error)) return known.clock;
    throw error;
  }
}

async function read(database: Database, scope: Scope, machine_ms: Milliseconds): Promise<EnvironmentClock | null> {
  const key = toScopeName(scope);
  const seen_changes = changes;
  const clock = await READ.load(database, scope, key);
  // A value that was read before an invalidation is not cached after it.
  if (changes === seen_changes) getClockCache(database).set(key, { clock, seen_ms: machine_ms });
  return clock;
}

/** Whether a fresh entry shows, without a query, that the environment uses the machine's clock. Refreshes the entry before it is stale. */
export function isByTheMachine(database: Database, scope: Scope, machine_ms: Milliseconds): boolean {
  const known = memories.get(database)?.get(toScopeName(scope));
  if (known?.clock !== null || machine_ms - known.seen_ms >= FRESH_MS) return false;
  if (machine_ms - known.seen_ms >= RENEWED_MS && !known.is_loading) {
    known.is_loading = true;
    // If the refresh fails, the next read after the entry is stale reports the error.
    read(database, scope, machine_ms).catch(() => undefined);
  }
  return true;
}

function toScopeName({ tenant_id, environment_id }: Scope): string {
  return `${tenant_id} ${environment_id}`;
}

/** Clears the cached clocks. Called after a process created or deleted a clock. */
export function clearClocks(database: Database): void {
  changes++;
  memories.get(database)?.clear();
}

/** Source of instants for background work: the clock of the environment, or that of the machine. */
export async function loadNow(database: Database, scope: Scope, machine: () => Date): Promise<() => Date> {
  const clock = await loadClock(database, scope);
  return clock ? () => clock.now : machine;
}

/** Loader of clocks. Concurrent reads for one environment are batched, because the usage of each of many invoices needs the clock. */
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
  const known = memories.get(database) ?? createLru<KnownClock>(10_000);
  memories.set(database, known);
  return known;
}
