/**
 * Counts the past for a new version of a meter: the raw events that stand before its barriers, one UTC day at a time. A day
 * of such events never changes, so its rows carry one token, and a back-fill that was broken off goes on where it was.
 */

import type { CompiledMeter } from '../core/metering/compiled-meter.ts';
import { measure } from '../core/metering/compiled-meter.ts';
import { compileMeters, matches } from '../core/metering/match.ts';
import { BucketAggregator } from '../core/metering/plan.ts';
import { US_PER_DAY } from '../core/metering/timestamp.ts';
import { daysOfRawEvents, rawEvents } from '../storage/events/raw-events.ts';
import { EngineClock, tooLate, writeRows } from '../storage/events/rows.ts';
import { bucketLine, USAGE_BUCKETS } from '../storage/events/tables.ts';
import {
  barriersOf,
  lockBackfill,
  type MeterVersion,
  noteBackfill,
  settleVersion,
  versionsToBackfill,
} from '../storage/meter-versions.ts';
import type { Stores } from '../storage/stores.ts';

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
    await settleVersion(transaction, version, 'live');
    return true;
  });
}

async function countThePast(stores: Stores, version: MeterVersion): Promise<void> {
  const meter = compiled(version);
  const past = {
    tenant_id: version.tenant_id,
    environment_id: version.environment_id,
    event_name: meter.event_name,
    before: await barriersOf(stores.postgres, version),
  };
  const days = await daysOfRawEvents(stores.clickhouse, past);
  const clock = new EngineClock();
  await clock.synchronise(stores.clickhouse);
  for (const [done, day] of days.entries()) {
    await noteBackfill(stores.postgres, version, { done, days: days.length });
    const lines = await linesOfDay(stores, { meter, version, past, day });
    const deadline_s = clock.now_s() + WRITE_WITHIN_S;
    const token = `backfill:${version.meter_id}:${version.version}:${day}`;
    await writeRows(stores.clickhouse, USAGE_BUCKETS, { lines, fence: { token, deadline_s } });
    if (clock.now_s() >= deadline_s) throw tooLate('usage_buckets');
  }
}

async function linesOfDay(
  stores: Stores,
  {
    meter,
    version,
    past,
    day,
  }: { meter: CompiledMeter; version: MeterVersion; past: Parameters<typeof daysOfRawEvents>[1]; day: number },
): Promise<string[]> {
  const aggregator = new BucketAggregator();
  const range = [day * US_PER_DAY, (day + 1) * US_PER_DAY] as const;
  for await (const event of rawEvents(stores.clickhouse, { ...past, ranges: [range] })) {
    if (!matches(meter, event.properties)) continue;
    const contribution = measure(meter, event);
    if (contribution.unusable === undefined) aggregator.add(version, meter, contribution);
  }
  return aggregator.drain().map((row) => bucketLine(row, version.version));
}

function compiled(version: MeterVersion): CompiledMeter {
  const [[meter] = []] = [...compileMeters([version.definition!]).values()];
  if (!meter) throw new Error(`meter ${version.meter_id} has no definition`);
  return meter;
}
