/**
 * Audit of bucket rows: recounts them from the raw events and compares them with the stored rows. It processes some days, customers
 * and meters at a time. So memory does not grow with the data, nor the number of queries with the days. A difference is checked
 * again with the bucket rows locked (storage/progress/bucket-lock.ts), so that a slice in progress is never a false alarm.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type Microseconds, US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { type BucketRow, withDailyRollups } from '../../../core/metering/bucket-aggregator.ts';
import { type RowDifference, rowDifferences } from '../../../core/metering/row-differences.ts';
import { withBucketsLockedForReading } from '../../../storage/progress/bucket-lock.ts';
import { findRebuild, type RebuildKeys, requestRebuild } from '../../../storage/progress/bucket-rebuilds.ts';
import { listMetersToAudit } from '../../../storage/progress/meter-versions.ts';
import { type PartitionProgress } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import {
  type CountedMeter,
  type DaysWanted,
  findCountedMeter,
  listDaysWithEvents,
  listRecountRanges,
  recountDays,
  recountDaysOfMeters,
  toEventsKey,
} from '../../../storage/usage/recount.ts';
import { toSnapshot } from '../../../storage/usage/snapshot.ts';
import { listDaysWithRows, listStoredRows } from '../../../storage/usage/stored-rows.ts';
import type { AuditStores } from './findings.ts';

export type UsageAuditInput = {
  readonly tenant_id?: string | undefined;
  readonly environment_id?: string | undefined;
  readonly meter_id?: string | undefined;
  /** Half-open range; every day that overlaps it is checked. */
  readonly start_us?: Microseconds | undefined;
  readonly end_us?: Microseconds | undefined;
};

export type UsageDifference = Scope &
  RowDifference & { readonly meter_id: string; readonly meter_version: number; readonly day: number };

type UsageAuditReport = {
  readonly meters: number;
  readonly days: number;
  readonly rows: number;
  readonly differences: number;
};

/** Limits of one recount: in the worst case each event becomes a row of each meter. A longer day is split into ranges. */
const EVENTS_MAX = 100_000;
const METERS_MAX = 5;
const CUSTOMERS_MAX = 500;
const READING_SECONDS_MAX = 30;

export async function auditUsage(
  stores: AuditStores,
  wanted: UsageAuditInput,
  found: (difference: UsageDifference) => void,
): Promise<UsageAuditReport> {
  const report = { meters: 0, days: 0, rows: 0, differences: 0 };
  for (const group of await groupMetersByEvents(stores, wanted)) {
    report.meters += group.length;
    for (const span of toSpans(await listDays(stores, group, wanted))) {
      const compared = await auditDays(stores, group, span);
      report.days += span.count * group.length;
      report.rows += compared.rows;
      report.differences += compared.differences.length;
      for (const difference of compared.differences) found(difference);
    }
  }
  return report;
}

/** Meters that are recounted from the same events, which are read once. */
type AuditedMeters = readonly [AuditedMeter, ...AuditedMeter[]];

async function groupMetersByEvents(
  stores: AuditStores,
  { tenant_id, environment_id, meter_id }: UsageAuditInput,
): Promise<AuditedMeters[]> {
  const groups: AuditedMeters[] = [];
  const open = new Map<string, [AuditedMeter, ...AuditedMeter[]]>();
  const progress = await readProgress(stores.postgres);
  for (const { meter_id: id, ...scope } of await listMetersToAudit(stores.postgres, {
    tenant_id,
    environment_id,
    meter_id,
  })) {
    const counted = await loadAuditedMeter(stores, scope, { meter_id: id, progress });
    // No query reads the rows of a meter that is being back-filled, so they are not audited.
    if (!counted) continue;
    const key = toEventsKey(counted);
    const known = open.get(key);
    if (known && known.length < METERS_MAX) known.push(counted);
    else {
      const group: [AuditedMeter] = [counted];
      groups.push(group);
      open.set(key, group);
    }
  }
  return groups;
}

/** Audits random days of meters; `chance` returns numbers in [0, 1). */
export async function auditSample(
  stores: AuditStores,
  { size, chance }: { size: number; chance: () => number },
  found: (difference: UsageDifference) => void,
): Promise<UsageAuditReport> {
  const meters = await listMetersToAudit(stores.postgres, {});
  const report = { meters: 0, days: 0, rows: 0, differences: 0 };
  for (let taken = 0; taken < size && meters.length > 0; taken++) {
    const { meter_id, ...scope } = meters[Math.floor(chance() * meters.length)]!;
    const counted = await loadAuditedMeter(stores, scope, { meter_id, progress: await readProgress(stores.postgres) });
    const days = counted ? await listDays(stores, [counted], {}) : [];
    if (!counted || days.length === 0) continue;
    const [span] = toSpans([days[Math.floor(chance() * days.length)]!]);
    const compared = await auditDays(stores, [counted], span!);
    report.meters++;
    report.days++;
    report.rows += compared.rows;
    report.differences += compared.differences.length;
    for (const difference of compared.differences) found(difference);
  }
  return report;
}

/** Requests that the pipeline rewrites the differing rows; returns the ids of the rebuilds. */
export async function repairUsage(
  { postgres }: AuditStores,
  differences: readonly UsageDifference[],
): Promise<string[]> {
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

/** A meter with its counting state. It has daily rollups for the days before `days_before`. */
type AuditedMeter = CountedMeter & { readonly days_before: number };

async function loadAuditedMeter(
  stores: AuditStores,
  scope: Scope,
  { meter_id, progress }: { meter_id: string; progress: readonly PartitionProgress[] },
): Promise<AuditedMeter | undefined> {
  const { before, days_before } = toSnapshot(progress);
  const counted = await findCountedMeter(stores, scope, { meter_id, before });
  return counted && { ...counted, days_before };
}

type AuditedDay = { readonly day: number; readonly size: number };

/**
 * Lists the days with events or bucket rows. `size` is the larger of the number of events and the number of rows of any one meter. A row
 * without an event is a difference, so days with rows alone are included.
 */
async function listDays(
  stores: AuditStores,
  group: AuditedMeters,
  { start_us, end_us }: UsageAuditInput,
): Promise<AuditedDay[]> {
  const sizes = new Map((await listDaysWithEvents(stores, group[0])).map(({ day, events }) => [day, events]));
  for (const counted of group)
    for (const { day, rows } of await listDaysWithRows(stores.clickhouse, counted))
      sizes.set(day, Math.max(rows, sizes.get(day) ?? 0));
  const first = start_us === undefined ? Number.NEGATIVE_INFINITY : Math.floor(start_us / US_PER_DAY);
  const end = end_us === undefined ? Number.POSITIVE_INFINITY : end_us / US_PER_DAY;
  const days = [...sizes].map(([day, size]) => ({ day, size })).filter(({ day }) => day >= first && day < end);
  return days.sort((a, b) => a.day - b.day);
}

/** Days that are checked together; `count` of them have events or rows. */
type DaySpan = { days: [number, number]; count: number; size: number };

/** Groups as many days as are recounted at once; a larger day forms a group of its own. */
function toSpans(days: readonly AuditedDay[]): DaySpan[] {
  const spans: DaySpan[] = [];
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

type ComparedRows = { rows: number; differences: UsageDifference[] };

async function auditDays(stores: AuditStores, group: AuditedMeters, { days, size }: DaySpan): Promise<ComparedRows> {
  const result: ComparedRows = { rows: 0, differences: [] };
  const [day] = days;
  const ranges = size <= EVENTS_MAX ? [{}] : await listRecountRanges(stores, group[0], { day, events_max: EVENTS_MAX });
  for (const range of ranges) {
    const rows = await recountDaysOfMeters(stores, group, { days, range });
    for (const counted of group) {
      const expected = rows.filter(({ meter_id }) => meter_id === counted.meter_id);
      const compared = await compareStoredRows(stores, counted, { days, range, expected });
      result.rows += compared.rows;
      const customers = [...new Set(compared.differences.map((difference) => difference.external_customer_id))];
      for (let from = 0; from < customers.length; from += CUSTOMERS_MAX) {
        const external_customer_ids = customers.slice(from, from + CUSTOMERS_MAX);
        result.differences.push(...(await recheckDifferences(stores, counted, { days, external_customer_ids })));
      }
    }
  }
  return result;
}

/** Checks these customers again while no slice writes their rows. Skips the meter if its version was replaced meanwhile. */
async function recheckDifferences(
  stores: AuditStores,
  counted: AuditedMeter,
  wanted: DaysWanted,
): Promise<UsageDifference[]> {
  const name = `audit ${counted.meter_id} ${wanted.days[0]}`;
  return withBucketsLockedForReading(stores.postgres, { name, seconds_max: READING_SECONDS_MAX }, async (progress) => {
    const now = await loadAuditedMeter(stores, counted, { meter_id: counted.meter_id, progress });
    if (now?.version !== counted.version) return [];
    const expected = await recountDays(stores, now, wanted);
    return (await compareStoredRows(stores, now, { ...wanted, expected })).differences;
  });
}

/** Compares the stored rows with the recounted base rows (`expected`). */
async function compareStoredRows(
  stores: AuditStores,
  counted: AuditedMeter,
  wanted: DaysWanted & { readonly expected: readonly BucketRow[] },
): Promise<ComparedRows> {
  const expected = withDailyRollups(wanted.expected, counted.days_before);
  const all = await listStoredRows(stores.clickhouse, counted, { ...wanted, expected });
  // An attempt to make daily rollups may have left rows of later days, which no query reads.
  const stored = all.filter((row) => row.size !== 'DAY' || toUtcDay(row) < counted.days_before);
  const { tenant_id, environment_id, meter_id, version } = counted;
  const place = { tenant_id, environment_id, meter_id, meter_version: version };
  const differences = rowDifferences(expected, stored).map((difference) => ({
    ...place,
    day: toUtcDay(difference),
    ...difference,
  }));
  return { rows: stored.length, differences };
}

function toUtcDay({ bucket_start_us }: { bucket_start_us: Microseconds }): number {
  return Math.floor(bucket_start_us / US_PER_DAY);
}
