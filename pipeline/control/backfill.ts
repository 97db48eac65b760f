/**
 * Counts past events for a new version of a meter: the raw events before its barriers, one UTC day at a time. A day is divided into ranges
 * of customers (parts), so that memory does not grow with the day. The record of the version has the progress, so an interrupted back-fill
 * resumes there. The rows of a part are inserted with a mark, which shows whether they arrived (storage/events/bucket-rows.ts). Rows that
 * corrections touched meanwhile are rebuilt at the end. Events whose value the meter cannot use get their outcome here too.
 */
import { unavailable } from '../../core/foundation/error.ts';
import { type BucketRow, withDailyRollups } from '../../core/metering/bucket-aggregator.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { findMissingBucketRows, writeBucketRows } from '../../storage/events/bucket-rows.ts';
import type { CustomerRange } from '../../storage/events/customer-ranges.ts';
import { findMissingRows } from '../../storage/events/present.ts';
import { writeRows } from '../../storage/events/rows.ts';
import { EVENT_OUTCOMES } from '../../storage/events/tables.ts';
import { raiseFence } from '../../storage/events/write-fence.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import { isBucketLockFree } from '../../storage/progress/bucket-lock.ts';
import { requestRebuild } from '../../storage/progress/bucket-rebuilds.ts';
import { listEventsCorrectedSince } from '../../storage/progress/corrections.ts';
import {
  type BackfillProgress,
  beginPart,
  type CurrentBackfillPart,
  finishDay,
  finishVersion,
  isSuperseded,
  listVersionsToBackfill,
  loadBarriers,
  loadPartSize,
  lockBackfill,
  type MeterVersion,
  markSettling,
  type PartBegun,
  readVersion,
} from '../../storage/progress/meter-versions.ts';
import { readDaysBefore } from '../../storage/progress/partition-progress.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import {
  type CountedMeter,
  listDaysWithEvents,
  listRecountRanges,
  recountDaysReporting,
  toCountedMeter,
} from '../../storage/usage/recount.ts';

/** Counts the past events for each meter version whose barriers are reached on all partitions. Returns whether there was such a version. */
export async function backfillMeters(stores: Stores, { events_max }: { events_max: number }): Promise<boolean> {
  const waiting = await listVersionsToBackfill(stores.postgres, stores.log.partition_count);
  for (const version of waiting) await completeBackfill(stores, version, events_max);
  return waiting.length > 0;
}

async function completeBackfill(stores: Stores, version: MeterVersion, events_max: number): Promise<boolean> {
  // A version that another one replaces needs no rows, so it is not counted.
  if (await isSuperseded(stores.postgres, version)) return stopSuperseded(stores, version);
  if (version.definition !== null && !(await countThePast(stores, version, events_max))) return false;
  const settled = await locked(stores, version, async (transaction) => {
    // Another process may have completed the back-fill since the first query.
    const waiting = await listVersionsToBackfill(transaction, stores.log.partition_count);
    if (!waiting.some(({ meter_id, version: n }) => meter_id === version.meter_id && n === version.version))
      return false;
    if (version.definition !== null) return makeLive(transaction, version);
    await finishVersion(transaction, version, 'stopped');
    return true;
  });
  return settled ?? false;
}

async function stopSuperseded(stores: Stores, version: MeterVersion): Promise<boolean> {
  const settled = await locked(stores, version, async (transaction) => {
    await finishVersion(transaction, version, 'stopped');
    return true;
  });
  return settled ?? false;
}

/**
 * Runs `work` with a lock on the version; returns undefined if another process has the lock. `work` must not take a connection of the pool:
 * a holder of one connection that waits for a second may wait for ever if there are many such holders.
 */
function locked<T>(
  { postgres }: Stores,
  version: Pick<MeterVersion, 'meter_id' | 'version'>,
  work: (transaction: Database) => Promise<T>,
): Promise<T | undefined> {
  return postgres.transaction(async (transaction) =>
    (await lockBackfill(transaction, version)) ? work(transaction) : undefined,
  );
}

/**
 * Makes the version live at once, unless some of its rows are uncertain. In that case the rebuild that repairs these rows makes it live.
 */
async function makeLive(transaction: Database, version: MeterVersion): Promise<boolean> {
  // If a correction is rebuilding rows now, it does not rebuild those of this version. The next round finds the correction and rebuilds
  // them.
  if (!(await isBucketLockFree(transaction))) return false;
  const { uncertain_days } = await readVersion(transaction, version);
  const corrected = await listEventsCorrectedSince(transaction, version, version);
  if (uncertain_days.length + corrected.length === 0) {
    await finishVersion(transaction, version, 'live');
    return true;
  }
  const { meter_id } = version;
  const rebuild = await requestRebuild(transaction, version, {
    targets: uncertain_days.map((day) => ({ meter_id, day })),
    settles: { meter_id, version: version.version },
    reason: 'a back-fill was broken off or overtaken by corrections',
  });
  await markSettling(transaction, version, rebuild);
  return false;
}

/** Counts earlier events for a new version of a meter. Resolves to false if another process has locked the version. */
async function countThePast(stores: Stores, version: MeterVersion, events_max: number): Promise<boolean> {
  const { postgres } = stores;
  const counted = toCountedMeter(version, await loadBarriers(postgres, version));
  const days = await listDaysWithEvents(stores, counted);
  const part_events = await loadPartSize(postgres, version, events_max);
  for (const [done, { day }] of days.entries()) {
    if (isDayOver(await readVersion(postgres, version), day)) continue;
    for (const [part, range] of (
      await listRecountRanges(stores, counted, { day, events_max: part_events })
    ).entries()) {
      if (isPartOver(await readVersion(postgres, version), { day, part })) continue;
      const progress = { day, part, done, days: days.length };
      if (!(await writePart(stores, counted, { ...progress, range }))) return false;
    }
    const finish = async (transaction: Database) => {
      await finishDay(transaction, version, { day, done });
      return true;
    };
    if (!(await locked(stores, version, finish))) return false;
  }
  return true;
}

/** Whether the back-fill is done with a day: its rows are written, or a rebuild will write them. */
function isDayOver({ backfilled_until, uncertain_days }: BackfillProgress, day: number): boolean {
  return (backfilled_until !== null && day <= backfilled_until) || uncertain_days.includes(day);
}

function isPartOver(version: BackfillProgress, { day, part }: { day: number; part: number }): boolean {
  const { backfilling_day, backfilling_part } = version;
  return isDayOver(version, day) || (backfilling_day === day && part < backfilling_part);
}

type RangedBackfillPart = CurrentBackfillPart & { readonly range: CustomerRange };

/** Writes the bucket rows of one part. Resolves to false if another process has locked the version. */
async function writePart(stores: Stores, counted: CountedMeter, part: RangedBackfillPart): Promise<boolean> {
  const { clickhouse } = stores;
  const { day, range } = part;
  const found = await locked(stores, counted, () => countPart({ clickhouse }, counted, { day, range }));
  if (found === undefined) return false;
  // The part is recorded before its first write, so that a process that finds it unfinished can check whether its rows arrived.
  const begun = await locked(stores, counted, (transaction) => beginPart(transaction, counted, part));
  if (begun === undefined) return false;
  if (begun === null) return true;
  const written = await locked(stores, counted, async (transaction) => {
    // `days_before` does not change: no daily rollups are made while the past of a meter is being counted
    // (actions/metering/usage/make-daily-rollups.ts).
    const days_before = readDaysBefore(await readProgress(transaction));
    const rows = withDailyRollups(found.rows, days_before);
    await putPart({ clickhouse }, counted, { rows, outcomes: found.outcomes }, begun);
    return true;
  });
  return written ?? false;
}

/** Outcomes are written before bucket rows, so a part whose bucket rows exist is complete. */
async function putPart(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  { meter_id, version }: CountedMeter,
  { rows, outcomes }: BackfillCounts,
  { attempt, since }: PartBegun,
): Promise<void> {
  const own = { writer: `backfill:${meter_id}:${version}`, attempt };
  const isRetry = attempt !== since;
  if (isRetry) await raiseFence(clickhouse, own);
  const kind = (outcome: EventOutcome) => `${outcome.outcome}/${outcome.meter_id}`;
  await writeRows(clickhouse, EVENT_OUTCOMES, {
    rows: isRetry ? await findMissingRows(clickhouse, { table: EVENT_OUTCOMES.table, rows: outcomes, kind }) : outcomes,
    attempt: own,
  });
  const missing = isRetry ? await findMissingBucketRows(clickhouse, rows, { writer: own.writer, since }) : rows;
  await writeBucketRows(clickhouse, { rows: missing, getVersion: () => version }, own);
  if ((await findMissingBucketRows(clickhouse, rows, { writer: own.writer, since })).length > 0)
    throw unavailable('the usage store (rows of a back-fill that were written are not there)');
}

type BackfillCounts = { readonly rows: readonly BucketRow[]; readonly outcomes: readonly EventOutcome[] };

/** Counts the events of a part into bucket rows. Unusable events become outcomes in the form that the pipeline writes for later events. */
async function countPart(
  stores: Pick<Stores, 'clickhouse'>,
  counted: CountedMeter,
  { day, range }: { day: number; range: CustomerRange },
): Promise<BackfillCounts> {
  const { tenant_id, environment_id, meter_id } = counted;
  const outcomes: EventOutcome[] = [];
  const wanted = { days: [day, day + 1] as const, range };
  const rows = await recountDaysReporting(stores, counted, wanted, ({ event_id, log_position }, reason) => {
    outcomes.push({
      tenant_id,
      environment_id,
      event_id,
      ...log_position,
      outcome: 'unusable',
      meter_id,
      reason,
      body: '',
    });
  });
  return { rows, outcomes };
}
