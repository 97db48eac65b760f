/**
 * Rewrites bucket rows from the raw events, after a correction or for a repair. The owner of a partition does it as the effect of one
 * message, exactly once:
 *
 * lock the bucket rows → no slice is in its own → recount, and delete the old rows → write the new ones → verify → unlock
 *
 * After a crash or any other failure, everything is repeated under a greater attempt number. Its delete removes the rows of all earlier
 * attempts, and no row of these can arrive later (docs/decisions/0002).
 */
import { unavailable } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import { US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { type BucketRow, withDailyRollups } from '../../../core/metering/plan.ts';
import { findMissingUsageRows, writeUsageRows } from '../../../storage/events/usage-rows.ts';
import type { WriteAttempt } from '../../../storage/events/write-fence.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { toPartitionWriter } from '../../../storage/progress/attempts.ts';
import { beginRebuild, lockBucketsWhenQuiet, unlockBuckets } from '../../../storage/progress/bucket-lock.ts';
import { computeRebuildRange, type OwnedPartition, readDaysBefore } from '../../../storage/progress/slice-state.ts';
import {
  type CountedMeter,
  type DaysToRecount,
  findCountedMeter,
  recountCustomerDays,
  toEventsKey,
} from '../../../storage/usage/recount.ts';
import { toSnapshot } from '../../../storage/usage/snapshot.ts';
import { deleteRows, type RowsToDelete } from '../../../storage/usage/stored-rows.ts';

/** All rows of these customers on a UTC day, in the version of the meter that answers queries. */
export type RebuildTarget = Scope & {
  readonly meter_id: string;
  readonly day: number;
  /** Absent means all customers of the day. */
  readonly external_customer_ids?: readonly string[] | undefined;
};

export type Rebuild = {
  readonly held: OwnedPartition;
  /** Offset before which the rows of the own partition are complete; absent means the end of its slices. */
  readonly own_before?: bigint;
  /** A version that becomes live with this rebuild: its rows are written although no query reads them yet. */
  readonly settling?: { readonly meter_id: string; readonly version: number } | null;
  /** Called with the bucket rows locked, before the recount; prepares other inputs of the rows. */
  prepare?(attempt: WriteAttempt): Promise<void>;
  /** Called with the bucket rows locked. */
  targets(): Promise<readonly RebuildTarget[]>;
  /**
   * Rows of the slice that contains the rebuild. They are written with it, except rows that it recounts. `versionOf` returns the meter
   * version by which they were counted.
   */
  readonly beside?: { readonly rows: readonly BucketRow[]; readonly versionOf: (meter_id: string) => number };
  /** Records the end, in the transaction that unlocks the bucket rows. */
  finish(transaction: Database): Promise<void>;
};

export async function rebuildBuckets(stores: Stores, rebuild: Rebuild): Promise<void> {
  const { held } = rebuild;
  const progress = await lockBucketsWhenQuiet(stores.postgres, held);
  const { attempt, since } = await beginRebuild(stores.postgres, held);
  const own = { writer: toPartitionWriter(held.partition), attempt };
  const before = new Map(toSnapshot(progress).before);
  if (rebuild.own_before !== undefined) before.set(held.partition, rebuild.own_before);
  await rebuild.prepare?.(own);
  const planned = await planRecount(stores, rebuild, before);
  // ClickHouse does the delete and this process most of the recount, so they run at the same time. The bucket lock covers both.
  const recountTargets = await recountAndDelete(stores, planned, attempt);
  const days_before = readDaysBefore(progress);
  const beside = withDailyRollups(selectSliceRows(rebuild, planned.old), days_before);
  // Each month of an earlier attempt arrived with these rows or not at all. Its recounted rows are deleted again.
  const missing = attempt === since ? beside : await findMissingUsageRows(stores.clickhouse, beside, { ...own, since });
  const findVersion = (meter_id: string) => planned.versions.get(meter_id) ?? rebuild.beside!.versionOf(meter_id);
  const rows = [...withDailyRollups(recountTargets, days_before), ...missing];
  await writeRows(stores, { rows, versionOf: findVersion }, own);
  stores.usage_memory?.comingRebuild({
    ...computeRebuildRange(progress),
    customers: groupCustomersByMeter(planned.old),
  });
  await unlockBuckets(stores.postgres, held, (transaction) => rebuild.finish(transaction));
}

/** Selects the rows of the slice that the rebuild does not recount. */
function selectSliceRows({ beside }: Rebuild, old: readonly RowsToDelete[]): readonly BucketRow[] {
  if (beside === undefined || beside.rows.length === 0) return [];
  const touched = new Map<string, ReadonlySet<string> | null>();
  for (const { counted, day, external_customer_ids } of old)
    touched.set(`${counted.meter_id}/${day}`, external_customer_ids ? new Set(external_customer_ids) : null);
  return beside.rows.filter(({ meter_id, bucket_start_us, external_customer_id }) => {
    const customers = touched.get(`${meter_id}/${Math.floor(bucket_start_us / US_PER_DAY)}`);
    return customers === undefined || (customers !== null && !customers.has(external_customer_id));
  });
}

/** By meter; null for all customers. */
function groupCustomersByMeter(old: readonly RowsToDelete[]): Map<string, ReadonlySet<string> | null> {
  const byMeter = new Map<string, Set<string> | null>();
  for (const { counted, external_customer_ids } of old) {
    const known = byMeter.get(counted.meter_id);
    if (external_customer_ids === undefined) byMeter.set(counted.meter_id, null);
    else if (known !== null) byMeter.set(counted.meter_id, new Set([...(known ?? []), ...external_customer_ids]));
  }
  return byMeter;
}

/** The rows to delete and to recount; `versions` by meter. */
type RecountPlan = { old: RowsToDelete[]; groups: DaysToRecount[]; versions: Map<string, number> };

async function planRecount(
  stores: Stores,
  rebuild: Rebuild,
  before: ReadonlyMap<number, bigint>,
): Promise<RecountPlan> {
  const result: RecountPlan = { old: [], groups: [], versions: new Map() };
  const targets = groupBy(await rebuild.targets(), (target) => `${scopeKey(target)}/${target.meter_id}`);
  const meters = await Promise.all(
    [...targets.values()].map((some) => loadCountedMeter(stores, rebuild, { some, before })),
  );
  const counted = meters.filter((meter) => meter !== undefined);
  for (const group of groupBy(counted, (meter) => toEventsKey(meter.counted)).values()) {
    // Meters that count the same events are rewritten for all their targets, so that the events are read once.
    const days = mergeTargets(group.flatMap(({ targets: some }) => some));
    const sameEvents = group.map((meter) => meter.counted) as [CountedMeter, ...CountedMeter[]];
    for (const [day, customers] of days) {
      const external_customer_ids = customers === null ? undefined : [...customers];
      for (const meter of sameEvents) result.old.push({ counted: meter, day, external_customer_ids });
    }
    for (const meter of sameEvents) result.versions.set(meter.meter_id, meter.version);
    result.groups.push({ counted: sameEvents, days });
  }
  return result;
}

/** Waits for both, also if one fails: nothing of this try is under way when the next one begins. */
async function recountAndDelete(
  stores: Stores,
  { groups, old }: RecountPlan,
  attempt: bigint,
): Promise<readonly BucketRow[]> {
  const [recounted, deleted] = await Promise.allSettled([
    recountAll(stores, groups),
    deleteRows(stores.clickhouse, old, attempt),
  ]);
  if (deleted.status === 'rejected') throw deleted.reason;
  if (recounted.status === 'rejected') throw recounted.reason;
  return recounted.value;
}

async function recountAll(stores: Stores, groups: readonly DaysToRecount[]): Promise<BucketRow[]> {
  const rows: BucketRow[] = [];
  for await (const row of recountCustomerDays(stores, groups)) rows.push(row);
  return rows;
}

/** Undefined for a meter whose past is still being counted: no query reads its rows, and the back-fill settles events that it meets. */
async function loadCountedMeter(
  stores: Stores,
  { settling }: Rebuild,
  { some, before }: { some: readonly [RebuildTarget, ...RebuildTarget[]]; before: ReadonlyMap<number, bigint> },
): Promise<{ counted: CountedMeter; targets: readonly RebuildTarget[] } | undefined> {
  const [{ meter_id, ...scope }] = some;
  const version = settling?.meter_id === meter_id ? settling.version : undefined;
  const counted = await findCountedMeter(stores, scope, { meter_id, before, settling: version });
  return counted && { counted, targets: some };
}

/** Each day and customer once, because rows written twice would count twice. Null means all customers of the day. */
function mergeTargets(targets: readonly RebuildTarget[]): Map<number, Set<string> | null> {
  const days = new Map<number, Set<string> | null>();
  for (const { day, external_customer_ids } of targets) {
    const known = days.get(day);
    if (external_customer_ids === undefined) days.set(day, null);
    else if (known === undefined) days.set(day, new Set(external_customer_ids));
    else if (known !== null) for (const customer of external_customer_ids) known.add(customer);
  }
  return days;
}

type RowsToWrite = { readonly rows: readonly BucketRow[]; readonly versionOf: (meter_id: string) => number };

async function writeRows(
  { clickhouse }: Stores,
  { rows, versionOf: findVersion }: RowsToWrite,
  own: WriteAttempt,
): Promise<void> {
  await writeUsageRows(clickhouse, { rows, getVersion: findVersion }, own);
  const missing = await findMissingUsageRows(clickhouse, rows, { writer: own.writer, since: own.attempt });
  if (missing.length > 0) throw unavailable('the usage store (rows that were written anew are not there)');
}
