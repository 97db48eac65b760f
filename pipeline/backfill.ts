/**
 * Counts the past for a new version of a meter: the raw events that stand before its barriers, one UTC day at a time. The
 * rows of a day carry one token, and how far the work is stands in the record of the version, so a back-fill that was broken
 * off goes on where it was. A day that was in hand then, longer ago than its token can be trusted, is rebuilt at the end, and
 * so is what corrections touched meanwhile.
 */

import { isGateOpen } from '../storage/bucket-gate.ts';
import { requestRebuild } from '../storage/bucket-rebuilds.ts';
import { correctedSince } from '../storage/corrections.ts';
import { EngineClock, tooLate, writeRows } from '../storage/events/rows.ts';
import { usageBuckets } from '../storage/events/tables.ts';
import {
  barriersOf,
  beginDay,
  finishDay,
  lockBackfill,
  type MeterVersion,
  noteSettling,
  readVersion,
  settleVersion,
  versionsToBackfill,
} from '../storage/meter-versions.ts';
import type { Database, Stores } from '../storage/stores.ts';
import { type Counted, countedBy, daysWithEvents, recountDay } from '../storage/usage/recount.ts';

const WRITE_WITHIN_S = 60;

/** Brings every version that all partitions have met to its state; answers how many it settled. */
export async function backfillMeters(stores: Stores): Promise<number> {
  const waiting = await versionsToBackfill(stores.postgres, stores.log.partition_count);
  let settled = 0;
  for (const version of waiting) if (await settle(stores, version)) settled++;
  return settled;
}

/** One process at a time per version. */
async function settle(stores: Stores, version: MeterVersion): Promise<boolean> {
  return stores.postgres.transaction(async (transaction) => {
    if (!(await lockBackfill(transaction, version))) return false;
    if (version.definition === null) {
      await settleVersion(transaction, version, 'stopped');
      return true;
    }
    await countThePast(stores, version);
    return makeLive(transaction, version);
  });
}

/** Live at once, unless rows are uncertain: then the rebuild that mends them makes it live. */
async function makeLive(transaction: Database, version: MeterVersion): Promise<boolean> {
  // While a correction is rebuilding rows it does not know of us: the next round finds what it has done.
  if (!(await isGateOpen(transaction))) return false;
  const { uncertain_days } = await readVersion(transaction, version);
  const corrected = await correctedSince(transaction, version, version);
  if (uncertain_days.length + corrected.length === 0) {
    await settleVersion(transaction, version, 'live');
    return true;
  }
  const { meter_id } = version;
  const rebuild = await requestRebuild(transaction, version, {
    targets: uncertain_days.map((day) => ({ meter_id, day })),
    settles: { meter_id, version: version.version },
    reason: 'a back-fill was broken off or overtaken by corrections',
  });
  await noteSettling(transaction, version, rebuild);
  return false;
}

async function countThePast(stores: Stores, version: MeterVersion): Promise<void> {
  const counted = countedBy(version, await barriersOf(stores.postgres, version));
  const days = [...(await daysWithEvents(stores, counted)).keys()];
  const clock = new EngineClock();
  await clock.synchronise(stores.clickhouse);
  for (const [done, day] of days.entries()) {
    const progress = { day, done, days: days.length, trusted_s: WRITE_WITHIN_S };
    if (await beginDay(stores.postgres, version, progress)) await writeDay(stores, { counted, clock, day });
    await finishDay(stores.postgres, version, progress);
  }
}

async function writeDay(
  stores: Stores,
  { counted, clock, day }: { counted: Counted; clock: EngineClock; day: number },
): Promise<void> {
  const rows = await recountDay(stores, counted, { day });
  const deadline_s = clock.now_s() + WRITE_WITHIN_S;
  const token = `backfill:${counted.meter_id}:${counted.version}:${day}`;
  const target = usageBuckets(() => counted.version);
  await writeRows(stores.clickhouse, target, { rows, fence: { token, deadline_s } });
  if (clock.now_s() >= deadline_s) throw tooLate('usage_buckets');
}
