/** Checks whether the stores contain everything that a file needs (docs/rules/exports.md, "As of"). */
import { setTimeout } from 'node:timers/promises';
import { FarthingError, unavailable } from '../../../core/foundation/error.ts';
import { type Microseconds, parseEventTime, toUs } from '../../../core/foundation/time/instant.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { TaskModel } from '../../../storage/models/reporting/task.ts';
import { isCountedUntil, loadFreshness } from '../../../storage/usage/usage.ts';

/**
 * A file contains everything accepted before the end of its range and before it was requested. An error is thrown until that is counted. If
 * the clock was set back, the end of the range may be in the future. The file then contains the usage until now, and the next file contains
 * the rest. Returns the instant before which all accepted events are counted.
 */
export async function checkUsageCounted(
  stores: Stores,
  { range_end, asked_at, ...scope }: TaskModel,
  now: Date,
): Promise<string> {
  if (asked_at !== null && !(await waitUntilCounted(stores, parseInstantUs(asked_at))))
    throw unavailable(`what was accepted before it was asked for (${asked_at})`);
  const now_ms = now.getTime();
  const as_of = await loadFreshness(stores, scope, now_ms);
  if (parseInstantUs(as_of) < Math.min(parseInstantUs(range_end!), toUs(now_ms)))
    throw unavailable(`what was accepted before ${range_end} (it is counted up to ${as_of})`);
  return as_of;
}

const ATTEMPTS = 20;
const RETRY_EVERY_MS = 250;

/** Waits until the events are counted. That takes about a second, so waiting here is faster than another attempt. */
async function waitUntilCounted(stores: Stores, at_us: Microseconds): Promise<boolean> {
  for (let attempt = 1; attempt < ATTEMPTS; attempt++) {
    if (await isCountedUntil(stores, at_us)) return true;
    await setTimeout(RETRY_EVERY_MS);
  }
  return isCountedUntil(stores, at_us);
}

export function parseInstantUs(instant: string): Microseconds {
  const us = parseEventTime(instant);
  if (typeof us !== 'number') throw new FarthingError('system_error', `${instant} is no instant`);
  return us;
}
