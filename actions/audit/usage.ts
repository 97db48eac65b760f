/**
 * The audit: recounts usage rows from the raw events and compares them with what is stored: some days, customers
 * and meters at a time, so that memory does not grow with the data, nor the number of questions with the days. What differs is
 * looked at once more with the bucket rows locked (storage/progress/bucket-lock.ts), so that a slice in progress is never a false
 * alarm.
 */
import { type BucketRow, withDailyRollups } from '../../core/metering/plan.ts';
import { type RowDifference, rowDifferences } from '../../core/metering/row-differences.ts';
import type { Scope } from '../../core/scope.ts';
import { type Microseconds, US_PER_DAY } from '../../core/time/instant.ts';
import { withBucketsLockedForReading } from '../../storage/progress/bucket-lock.ts';
import { findRebuild, type RebuildKeys, requestRebuild } from '../../storage/progress/bucket-rebuilds.ts';
import { metersToAudit } from '../../storage/progress/meter-versions.ts';
import { type SliceState } from '../../storage/progress/slice-state.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import type { Stores } from '../../storage/stores.ts';
import {
  type Counted,
  countedNow,
  type DaysWanted,
  daysWithEvents,
  eventsKey,
  recountDays,
  recountDaysTogether,
  recountRanges,
} from '../../storage/usage/recount.ts';
import { snapshotOf } from '../../storage/usage/snapshot.ts';
import { daysWithRows, storedRows } from '../../storage/usage/stored-rows.ts';

export type AuditWanted = {
  readonly tenant_id?: string | undefined;
  readonly environment_id?: string | undefined;
  readonly meter_id?: string | undefined;
  /** Half-open; every day that it touches is looked at. */
  readonly start_us?: Microseconds | undefined;
  readonly end_us?: Microseconds | undefined;
};

export type Difference = Scope &
  RowDifference & { readonly meter_id: string; readonly meter_version: number; readonly day: number };

export type AuditReport = {
  readonly meters: number;
  readonly days: number;
  readonly rows: number;
  readonly differences: number;
};

type AuditStores = Pick<Stores, 'postgres' | 'clickhouse'>;

/** What is recounted at once: each of these events may be a row of each of these meters. A longer day is taken in ranges. */
const EVENTS_MAX = 100_000;
const METERS_MAX = 5;
const CUSTOMERS_MAX = 500;
const READING_SECONDS_MAX = 30;

export async function auditUsage(
  stores: AuditStores,
  wanted: AuditWanted,
  found: (difference: Difference) => void,
): Promise<AuditReport> {
  const report = { meters: 0, days: 0, rows: 0, differences: 0 };
  for (const group of await groupsOf(stores, wanted)) {
    report.meters += group.length;
    for (const span of spansOf(await daysOf(stores, group, wanted))) {
      const looked = await auditDays(stores, group, span);
      report.days += span.count * group.length;
      report.rows += looked.rows;
      report.differences += looked.differences.length;
      for (const difference of looked.differences) found(difference);
    }
  }
  return report;
}

/** Meters that are recounted from the same events, so that these are read once. */
type Group = readonly [Audited, ...Audited[]];

async function groupsOf(stores: AuditStores, { tenant_id, environment_id, meter_id }: AuditWanted): Promise<Group[]> {
  const groups: Group[] = [];
  const open = new Map<string, [Audited, ...Audited[]]>();
  const progress = await readProgress(stores.postgres);
  for (const { meter_id: id, ...scope } of await metersToAudit(stores.postgres, {
    tenant_id,
    environment_id,
    meter_id,
  })) {
    const counted = await countedAt(stores, scope, { meter_id: id, progress });
    // While the past of a meter is still being counted nobody reads its rows.
    if (!counted) continue;
    const key = eventsKey(counted);
    const known = open.get(key);
    if (known && known.length < METERS_MAX) known.push(counted);
    else {
      const group: [Audited] = [counted];
      groups.push(group);
      open.set(key, group);
    }
  }
  return groups;
}

/** Some days of meters taken at random: `chance` answers numbers in [0, 1). */
export async function auditSample(
  stores: AuditStores,
  { size, chance }: { size: number; chance: () => number },
  found: (difference: Difference) => void,
): Promise<AuditReport> {
  const meters = await metersToAudit(stores.postgres, {});
  const report = { meters: 0, days: 0, rows: 0, differences: 0 };
  for (let taken = 0; taken < size && meters.length > 0; taken++) {
    const { meter_id, ...scope } = meters[Math.floor(chance() * meters.length)]!;
    const counted = await countedAt(stores, scope, { meter_id, progress: await readProgress(stores.postgres) });
    const days = counted ? await daysOf(stores, [counted], {}) : [];
    if (!counted || days.length === 0) continue;
    const [span] = spansOf([days[Math.floor(chance() * days.length)]!]);
    const looked = await auditDays(stores, [counted], span!);
    report.meters++;
    report.days++;
    report.rows += looked.rows;
    report.differences += looked.differences.length;
    for (const difference of looked.differences) found(difference);
  }
  return report;
}

/** Asks the pipeline to write anew what differs; answers the ids of the rebuilds. */
export async function repairUsage({ postgres }: AuditStores, differences: readonly Difference[]): Promise<string[]> {
  const byMeter = new Map<string, Scope & { days: Map<number, Set<string>>; meter_id: string }>();
  for (const { tenant_id, environment_id, meter_id, day, external_customer_id } of differences) {
    const key = `${tenant_id}/${environment_id}/${meter_id}`;
    let meter = byMeter.get(key);
    if (!meter) byMeter.set(key, (meter = { tenant_id, environment_id, meter_id, days: new Map() }));
    let customers = meter.days.get(day);
    if (!customers) meter.days.set(day, (customers = new Set()));
    customers.add(external_customer_id);
  }
  const ids: string[] = [];
  for (const { days, meter_id, ...scope } of byMeter.values()) {
    for (const [day, customers] of days) {
      const all = [...customers];
      for (let from = 0; from < all.length; from += CUSTOMERS_MAX) {
        const targets: RebuildKeys[] = [
          { meter_id, day, external_customer_ids: all.slice(from, from + CUSTOMERS_MAX) },
        ];
        ids.push(await requestRebuild(postgres, scope, { targets, reason: 'an audit found differences' }));
      }
    }
  }
  return ids;
}

export async function isRepaired({ postgres }: AuditStores, ids: readonly string[]): Promise<boolean> {
  for (const id of ids) if (!(await findRebuild(postgres, id))?.done) return false;
  return true;
}

/** A meter as its rows should be: counted so, with daily rollups of the days before this one. */
type Audited = Counted & { readonly days_before: number };

async function countedAt(
  stores: AuditStores,
  scope: Scope,
  { meter_id, progress }: { meter_id: string; progress: readonly SliceState[] },
): Promise<Audited | undefined> {
  const { before, days_before } = snapshotOf(progress);
  const counted = await countedNow(stores, scope, { meter_id, before });
  return counted && { ...counted, days_before };
}

type Day = { readonly day: number; readonly size: number };

/** Days with events or with rows, and how many of them: a row that no event accounts for is a difference too. */
async function daysOf(stores: AuditStores, group: Group, { start_us, end_us }: AuditWanted): Promise<Day[]> {
  const sizes = new Map((await daysWithEvents(stores, group[0])).map(({ day, events }) => [day, events]));
  for (const counted of group)
    for (const { day, rows } of await daysWithRows(stores.clickhouse, counted))
      sizes.set(day, Math.max(rows, sizes.get(day) ?? 0));
  const first = start_us === undefined ? Number.NEGATIVE_INFINITY : Math.floor(start_us / US_PER_DAY);
  const end = end_us === undefined ? Number.POSITIVE_INFINITY : end_us / US_PER_DAY;
  const days = [...sizes].map(([day, size]) => ({ day, size })).filter(({ day }) => day >= first && day < end);
  return days.sort((a, b) => a.day - b.day);
}

/** Days that are looked at together; `count` of them hold anything. */
type Span = { days: [number, number]; count: number; size: number };

/** As many days as are recounted at once; one that holds more, alone. */
function spansOf(days: readonly Day[]): Span[] {
  const spans: Span[] = [];
  for (const { day, size } of days) {
    const last = spans.at(-1);
    if (last && last.size + size <= EVENTS_MAX) {
      last.days[1] = day + 1;
      last.count++;
      last.size += size;
    } else spans.push({ days: [day, day + 1], count: 1, size });
  }
  return spans;
}

type Looked = { rows: number; differences: Difference[] };

async function auditDays(stores: AuditStores, group: Group, { days, size }: Span): Promise<Looked> {
  const result: Looked = { rows: 0, differences: [] };
  const [day] = days;
  const ranges = size <= EVENTS_MAX ? [{}] : await recountRanges(stores, group[0], { day, events_max: EVENTS_MAX });
  for (const range of ranges) {
    const rows = await recountDaysTogether(stores, group, { days, range });
    for (const counted of group) {
      const expected = rows.filter(({ meter_id }) => meter_id === counted.meter_id);
      const looked = await compare(stores, counted, { days, range, expected });
      result.rows += looked.rows;
      const customers = [...new Set(looked.differences.map((difference) => difference.external_customer_id))];
      for (let from = 0; from < customers.length; from += CUSTOMERS_MAX) {
        const external_customer_ids = customers.slice(from, from + CUSTOMERS_MAX);
        result.differences.push(...(await certainDifferences(stores, counted, { days, external_customer_ids })));
      }
    }
  }
  return result;
}

/** The same customers once more while no slice is in its rows; the version may have been superseded meanwhile. */
async function certainDifferences(stores: AuditStores, counted: Audited, wanted: DaysWanted): Promise<Difference[]> {
  const name = `audit ${counted.meter_id} ${wanted.days[0]}`;
  return withBucketsLockedForReading(stores.postgres, { name, seconds_max: READING_SECONDS_MAX }, async (progress) => {
    const now = await countedAt(stores, counted, { meter_id: counted.meter_id, progress });
    if (now?.version !== counted.version) return [];
    const expected = await recountDays(stores, now, wanted);
    return (await compare(stores, now, { ...wanted, expected })).differences;
  });
}

/** `expected`: the base rows as they were recounted. */
async function compare(
  stores: AuditStores,
  counted: Audited,
  wanted: DaysWanted & { readonly expected: readonly BucketRow[] },
): Promise<Looked> {
  const expected = withDailyRollups(wanted.expected, counted.days_before);
  const all = await storedRows(stores.clickhouse, counted, { ...wanted, expected });
  // Daily rollups of later days are what a try to make them has left: nobody reads them.
  const stored = all.filter((row) => row.size !== 'DAY' || dayOf(row) < counted.days_before);
  const { tenant_id, environment_id, meter_id, version } = counted;
  const place = { tenant_id, environment_id, meter_id, meter_version: version };
  const differences = rowDifferences(expected, stored).map((difference) => ({
    ...place,
    day: dayOf(difference),
    ...difference,
  }));
  return { rows: stored.length, differences };
}

function dayOf({ bucket_start_us }: { bucket_start_us: Microseconds }): number {
  return Math.floor(bucket_start_us / US_PER_DAY);
}
