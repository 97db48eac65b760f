/**
 * Counts the past for a new version of a meter: the raw events that stand before its barriers, one UTC day at a time, and of
 * it one range of customers at a time, so that memory does not grow with the day. The rows of a part carry one token, and how
 * far the work is stands in the record of the version, so a back-fill that was broken off goes on where it was. A day of which
 * a part was in hand then, longer ago than its token can be trusted, is rebuilt at the end, and so is what corrections touched
 * meanwhile. Events whose value the meter cannot use get their outcome here as well.
 */
import { type BucketRow, withDayRows } from '../core/metering/plan.ts';
import { isGateOpen } from '../storage/bucket-gate.ts';
import { requestRebuild } from '../storage/bucket-rebuilds.ts';
import { correctedSince } from '../storage/corrections.ts';
import type { CustomerRange } from '../storage/events/customer-ranges.ts';
import { EngineClock, tooLate, writeRows } from '../storage/events/rows.ts';
import { EVENT_OUTCOMES, type EventOutcome, usageBuckets } from '../storage/events/tables.ts';
import {
  type Backfilled,
  barriersOf,
  beginPart,
  finishDay,
  lockBackfill,
  type MeterVersion,
  noteSettling,
  type PartInHand,
  partSizeOf,
  readVersion,
  settleVersion,
  versionsToBackfill,
} from '../storage/meter-versions.ts';
import { daysBefore, readProgress } from '../storage/slices.ts';
import type { Database, Stores } from '../storage/stores.ts';
import { type Counted, countedBy, daysWithEvents, recountDayTelling, recountRanges } from '../storage/usage/recount.ts';

const WRITE_WITHIN_S = 60;

/** Brings every version that all partitions have met to its state; answers how many it settled. */
export async function backfillMeters(stores: Stores, { events_max }: { events_max: number }): Promise<number> {
  const waiting = await versionsToBackfill(stores.postgres, stores.log.partition_count);
  let settled = 0;
  for (const version of waiting) if (await settle(stores, version, events_max)) settled++;
  return settled;
}

async function settle(stores: Stores, version: MeterVersion, events_max: number): Promise<boolean> {
  if (version.definition !== null && !(await countThePast(stores, version, events_max))) return false;
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
  version: Pick<MeterVersion, 'meter_id' | 'version'>,
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

type Backfill = { readonly counted: Counted; readonly clock: EngineClock };

/** False where another process has the version in hand. */
async function countThePast(stores: Stores, version: MeterVersion, events_max: number): Promise<boolean> {
  const { postgres, clickhouse } = stores;
  const counted = countedBy(version, await barriersOf(postgres, version));
  const days = await daysWithEvents(stores, counted);
  const clock = new EngineClock();
  await clock.synchronise(clickhouse);
  const part_events = await partSizeOf(postgres, version, events_max);
  for (const [done, day] of days.entries()) {
    if (isDayOver(await readVersion(postgres, version), day)) continue;
    for (const [part, range] of (await recountRanges(stores, counted, { day, events_max: part_events })).entries()) {
      if (isPartOver(await readVersion(postgres, version), { day, part })) continue;
      const progress = { day, part, done, days: days.length, trusted_s: WRITE_WITHIN_S };
      if (!(await writePart(stores, { counted, clock }, { ...progress, range }))) return false;
    }
    const finish = async (transaction: Database) => {
      await finishDay(transaction, version, { day, done });
      return true;
    };
    if (!(await locked(stores, version, finish))) return false;
  }
  return true;
}

/** Whether a day is written, or left to a rebuild. */
function isDayOver({ backfilled_until, uncertain_days }: Backfilled, day: number): boolean {
  return (backfilled_until !== null && day <= backfilled_until) || uncertain_days.includes(day);
}

function isPartOver(version: Backfilled, { day, part }: { day: number; part: number }): boolean {
  const { backfilling_day, backfilling_part } = version;
  return isDayOver(version, day) || (backfilling_day === day && part < backfilling_part);
}

type Part = PartInHand & { readonly range: CustomerRange };

/** False where another process has the version in hand. */
async function writePart(stores: Stores, { counted, clock }: Backfill, part: Part): Promise<boolean> {
  const { clickhouse } = stores;
  const { day, range } = part;
  const { meter_id, version } = counted;
  const found = await locked(stores, counted, () => countPart({ clickhouse }, counted, { day, range }));
  if (found === undefined) return false;
  const now_s = clock.now_s() - 1;
  // On record before anything is written: who finds the part in hand for longer knows that nothing of it can still arrive.
  const left_s = await locked(stores, counted, (transaction) => beginPart(transaction, counted, part));
  if (left_s === undefined) return false;
  if (left_s === null) return true;
  const deadline_s = now_s + Math.floor(left_s);
  const fence = { token: `backfill:${meter_id}:${version}:${day}:${part.part}`, deadline_s };
  const written = await locked(stores, counted, async (transaction) => {
    await writeRows(clickhouse, EVENT_OUTCOMES, { rows: found.outcomes, fence });
    // It stays so: no day rows are made while the past of a meter is being counted (actions/make-day-rows.ts).
    const days_before = daysBefore(await readProgress(transaction));
    const rows = withDayRows(found.rows, days_before);
    await writeRows(
      clickhouse,
      usageBuckets(() => version),
      { rows, fence },
    );
    if (clock.now_s() >= deadline_s) throw tooLate('usage_buckets');
    return true;
  });
  return written ?? false;
}

type Counts = { readonly rows: readonly BucketRow[]; readonly outcomes: readonly EventOutcome[] };

/** Outcomes as the pipeline writes them for events that come later. */
async function countPart(
  stores: Pick<Stores, 'clickhouse'>,
  counted: Counted,
  wanted: { day: number; range: CustomerRange },
): Promise<Counts> {
  const { tenant_id, environment_id, meter_id } = counted;
  const outcomes: EventOutcome[] = [];
  const rows = await recountDayTelling(stores, counted, wanted, ({ event_id, place }, reason) => {
    outcomes.push({ tenant_id, environment_id, event_id, ...place, outcome: 'unusable', meter_id, reason, body: '' });
  });
  return { rows, outcomes };
}
