/**
 * The clock of an environment that has one (docs/rules/clock.md). Nearly none has: that there is none is remembered for a while,
 * and forgotten when a process is told that one was made (docs/decisions/0010-test-clocks.md). A clock itself is read each time,
 * so that who has seen where it stands finds every process there.
 */
import { LRUCache } from 'lru-cache';
import type { Scope } from '../core/scope.ts';
import { type Milliseconds, toInstant } from '../core/time/instant.ts';
import { isAway } from './failure.ts';
import { TestClockModel } from './models/test-clock.ts';
import type { Database } from './stores.ts';
import { TogetherByKey } from './together.ts';

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

type Known = {
  readonly clock: EnvironmentClock | null;
  readonly seen_ms: Milliseconds;
  /** It is being read again. */
  is_asked?: boolean;
};

const memories = new WeakMap<Database, LRUCache<string, Known>>();
/** How often something was forgotten. */
let changes = 0;

/** Null where the environment goes by the machine's clock, by which it is remembered. `database` is the pool of the process. */
export async function clockOf(
  database: Database,
  scope: Scope,
  machine_ms: Milliseconds = Date.now(),
): Promise<EnvironmentClock | null> {
  const memory = memoryOf(database);
  const known = memory.get(nameOf(scope));
  if (known?.clock === null && machine_ms - known.seen_ms < FRESH_MS) return null;
  try {
    return await read(database, scope, machine_ms);
  } catch (error) {
    // Who is known goes on sending events while Postgres is away.
    if (known && isAway(error)) return known.clock;
    throw error;
  }
}

async function read(database: Database, scope: Scope, machine_ms: Milliseconds): Promise<EnvironmentClock | null> {
  const key = nameOf(scope);
  const seen_changes = changes;
  const clock = await READ.ask(database, scope, key);
  // What was read before a change is not kept behind it.
  if (changes === seen_changes) memoryOf(database).set(key, { clock, seen_ms: machine_ms });
  return clock;
}

/** Whether it is known, without a question, that the environment goes by the machine's clock. It is asked again in time. */
export function isByTheMachine(database: Database, scope: Scope, machine_ms: Milliseconds): boolean {
  const known = memories.get(database)?.get(nameOf(scope));
  if (known?.clock !== null || machine_ms - known.seen_ms >= FRESH_MS) return false;
  if (machine_ms - known.seen_ms >= RENEWED_MS && !known.is_asked) {
    known.is_asked = true;
    // Where it fails, whoever asks when this is not known any more is told why.
    read(database, scope, machine_ms).catch(() => undefined);
  }
  return true;
}

function nameOf({ tenant_id, environment_id }: Scope): string {
  return `${tenant_id} ${environment_id}`;
}

/** After a clock was made, somewhere. */
export function forgetClocks(database: Database): void {
  changes++;
  memories.get(database)?.clear();
}

/** Where work that goes on beside requests has its instants from: the clock of the environment, or that of the machine. */
export async function clockFor(database: Database, scope: Scope, machine: () => Date): Promise<() => Date> {
  const clock = await clockOf(database, scope);
  return clock ? () => clock.now : machine;
}

/** Whoever asks at one time, for one environment, is answered together: each usage of many invoices goes by the clock. */
const READ = new TogetherByKey<Database, Scope, EnvironmentClock | null>(async (database, asked) => {
  const clock = await readClock(database, asked[0]!);
  return asked.map(() => clock);
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

function memoryOf(database: Database): LRUCache<string, Known> {
  const known = memories.get(database) ?? new LRUCache({ max: 10_000 });
  memories.set(database, known);
  return known;
}
