/**
 * Counts the past for a new version of a meter: the raw events that stand before its barriers, one UTC day at a time. The
 * rows of a day carry one token, and how far the work is stands in the record of the version, so a back-fill that was broken
 * off goes on where it was. A day that was in hand then, longer ago than its token can be trusted, is rebuilt at the end, and
 * so is what corrections touched meanwhile. Events whose value the meter cannot use get their outcome here as well.
 */
import { withDayRows } from '../core/metering/plan.ts';
import { US_PER_DAY } from '../core/metering/timestamp.ts';
import { isGateOpen } from '../storage/bucket-gate.ts';
import { requestRebuild } from '../storage/bucket-rebuilds.ts';
import { correctedSince } from '../storage/corrections.ts';
import { eventPlaces } from '../storage/events/event-places.ts';
import { EngineClock, tooLate, writeRows } from '../storage/events/rows.ts';
import { EVENT_OUTCOMES, type EventOutcome, usageBuckets } from '../storage/events/tables.ts';
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
import { daysBefore, readProgress } from '../storage/slices.ts';
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

async function settle(stores: Stores, version: MeterVersion): Promise<boolean> {
  if (version.definition !== null && !(await countThePast(stores, version))) return false;
  const settled = await locked(stores, version, async (transaction) => {
    // Another process may have done it since we looked.
    const waiting = await versionsToBackfill(transaction, stores.log.partition_count);
    if (!waiting.some(({ meter_id, version: n }) => meter_id === version.meter_id && n === version.version))
      return false;
    if (version.definition !== null) return makeLive(transaction, version);
    await settleVersion(transaction, version, 'stopped');
    return true;
  });
  return settled ?? false;
}

/**
 * One process at a time per version; undefined where another has it. What is done within asks nothing of the pool: who holds
 * one connection and waits for a second may wait for ever when there are many of his kind.
 */
function locked<T>(
  { postgres }: Stores,
  version: MeterVersion,
  work: (transaction: Database) => Promise<T>,
): Promise<T | undefined> {
  return postgres.transaction(async (transaction) =>
    (await lockBackfill(transaction, version)) ? work(transaction) : undefined,
  );
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

/** False where another process has the version in hand. */
async function countThePast(stores: Stores, version: MeterVersion): Promise<boolean> {
  const counted = countedBy(version, await barriersOf(stores.postgres, version));
  const days = [...(await daysWithEvents(stores, counted)).keys()];
  const clock = new EngineClock();
  await clock.synchronise(stores.clickhouse);
  for (const [done, day] of days.entries()) {
    const progress = { day, done, days: days.length, trusted_s: WRITE_WITHIN_S };
    // On record before anything is written: a crash leaves the day in hand.
    const isOurs = await locked(stores, version, (transaction) => beginDay(transaction, version, progress));
    if (isOurs === undefined) return false;
    const finished = await locked(stores, version, async (transaction) => {
      if (isOurs) await writeDay(stores, { counted, clock, day, transaction });
      await finishDay(transaction, version, progress);
      return true;
    });
    if (!finished) return false;
  }
  return true;
}

type DayInHand = { counted: Counted; clock: EngineClock; day: number; transaction: Database };

async function writeDay({ clickhouse }: Stores, { counted, clock, day, transaction }: DayInHand): Promise<void> {
  const unusable = new Map<string, string>();
  const rows = await recountDay({ clickhouse }, counted, { day }, (event_id, reason) => {
    unusable.set(event_id, reason);
  });
  const outcomes = await outcomesOf({ clickhouse }, counted, { day, unusable });
  // Counting may have taken long: a connection that was lost meanwhile has let another process begin.
  if (!(await lockBackfill(transaction, counted)))
    throw new Error(`the back-fill of meter ${counted.meter_id} is not ours any more`);
  const deadline_s = clock.now_s() + WRITE_WITHIN_S;
  const fence = { token: `backfill:${counted.meter_id}:${counted.version}:${day}`, deadline_s };
  await writeRows(clickhouse, EVENT_OUTCOMES, { rows: outcomes, fence });
  // It stays so: no day rows are made while the past of a meter is being counted (actions/make-day-rows.ts).
  const days_before = daysBefore(await readProgress(transaction));
  await writeRows(
    clickhouse,
    usageBuckets(() => counted.version),
    { rows: withDayRows(rows, days_before), fence },
  );
  if (clock.now_s() >= deadline_s) throw tooLate('usage_buckets');
}

/** As the pipeline writes them for events that come later; what a correction has put into this day has its own record. */
async function outcomesOf(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  { meter, meter_id, tenant_id, environment_id }: Counted,
  { day, unusable }: { day: number; unusable: ReadonlyMap<string, string> },
): Promise<EventOutcome[]> {
  if (unusable.size === 0) return [];
  const outcomes: EventOutcome[] = [];
  const scope = { tenant_id, environment_id };
  const bounds = { start_us: day * US_PER_DAY, end_us: (day + 1) * US_PER_DAY };
  for await (const place of eventPlaces(clickhouse, { ...scope, event_name: meter.event_name, ...bounds })) {
    const reason = unusable.get(place.event_id);
    if (reason !== undefined) outcomes.push({ ...scope, ...place, outcome: 'unusable', meter_id, reason, body: '' });
  }
  return outcomes;
}
