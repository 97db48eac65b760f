/**
 * Rewrites bucket rows from the raw events, after a correction or for a repair. The owner of a partition does it as the effect of one
 * message, exactly once:
 *
 *   lock the bucket rows → no slice writes bucket rows → recount, and delete the old rows → write the new ones → verify → unlock
 *
 * After a crash or any other failure, everything is repeated under a greater attempt number. The delete of the new attempt removes the rows
 * of all earlier attempts, and no row of these can arrive later (docs/decisions/0002).
 */
import { unavailable } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import { US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { type BucketRow, withDailyRollups } from '../../../core/metering/bucket-aggregator.ts';
import { findMissingBucketRows, writeBucketRows } from '../../../storage/events/bucket-rows.ts';
import type { WriteAttempt } from '../../../storage/events/write-fence.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { toPartitionWriter } from '../../../storage/progress/attempts.ts';
import { beginRebuild, lockBucketsWhenQuiet, unlockBuckets } from '../../../storage/progress/bucket-lock.ts';
import {
  computeRebuildRange,
  type OwnedPartition,
  readDaysBefore,
} from '../../../storage/progress/partition-progress.ts';
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
  readonly owned_partition: OwnedPartition;
  /** Offset before which the raw rows of the owned partition are complete. Default: the stored progress of the partition. */
  readonly own_before?: bigint;
  /** A version that becomes live with this rebuild: its rows are written although no query reads them yet. */
  readonly settling?: { readonly meter_id: string; readonly version: number } | null;
  /** Prepares further inputs of the rebuild. Called before the recount, with the bucket rows locked. */
  prepare?(attempt: WriteAttempt): Promise<void>;
  /** Lists the rows to rebuild. Called with the bucket rows locked. */
  targets(): Promise<readonly RebuildTarget[]>;
  /**
   * Bucket rows of the slice that has the corrections. The rebuild writes them, too, except rows that it recounts. `getVersion` returns the
   * meter version by which they were counted.
   */
  readonly slice_rows?: { readonly rows: readonly BucketRow[]; readonly getVersion: (meter_id: string) => number };
  /** Records that the message is processed, in the transaction that unlocks the bucket rows. */
  finish(transaction: Database): Promise<void>;
};

export async function rebuildBuckets(stores: Stores, rebuild: Rebuild): Promise<void> {
  const { owned_partition } = rebuild;
  const progress = await lockBucketsWhenQuiet(stores.postgres, owned_partition);
  const { attempt, since } = await beginRebuild(stores.postgres, owned_partition);
  const own = { writer: toPartitionWriter(owned_partition.partition), attempt };
  const before = new Map(toSnapshot(progress).before);
  if (rebuild.own_before !== undefined) before.set(owned_partition.partition, rebuild.own_before);
  await rebuild.prepare?.(own);
  const planned = await planRecount(stores, rebuild, before);
  // ClickHouse does the delete and this process most of the recount, so they run at the same time. The bucket lock covers both.
  const recountTargets = await recountAndDelete(stores, planned, attempt);
  const days_before = readDaysBefore(progress);
  const slice_rows = withDailyRollups(selectSliceRows(rebuild, planned.old), days_before);
  // An earlier attempt has written either all of the slice's rows in a month or none, so only the missing months are written. Rows that the
  // earlier attempt recounted are deleted.
  const missing =
    attempt === since ? slice_rows : await findMissingBucketRows(stores.clickhouse, slice_rows, { ...own, since });
  const getVersion = (meter_id: string) => planned.versions.get(meter_id) ?? rebuild.slice_rows!.getVersion(meter_id);
  const rows = [...withDailyRollups(recountTargets, days_before), ...missing];
  await writeRows(stores, { rows, getVersion }, own);
  stores.usage_cache?.announceRebuild({
    ...computeRebuildRange(progress),
    customers: groupCustomersByMeter(planned.old),
  });
  await unlockBuckets(stores.postgres, owned_partition, (transaction) => rebuild.finish(transaction));
}

/** Selects the rows of the slice that the rebuild does not recount. */
function selectSliceRows({ slice_rows }: Rebuild, old: readonly RowsToDelete[]): readonly BucketRow[] {
  if (slice_rows === undefined || slice_rows.rows.length === 0) return [];
  const touched = new Map<string, ReadonlySet<string> | null>();
  for (const { counted, day, external_customer_ids } of old)
    touched.set(`${counted.meter_id}/${day}`, external_customer_ids ? new Set(external_customer_ids) : null);
  return slice_rows.rows.filter(({ meter_id, bucket_start_us, external_customer_id }) => {
    const customers = touched.get(`${meter_id}/${Math.floor(bucket_start_us / US_PER_DAY)}`);
    return customers === undefined || (customers !== null && !customers.has(external_customer_id));
  });
}

/** Groups the customers by meter; null means all customers. */
function groupCustomersByMeter(old: readonly RowsToDelete[]): Map<string, ReadonlySet<string> | null> {
  const byMeter = new Map<string, Set<string> | null>();
  for (const { counted, external_customer_ids } of old) {
    const known = byMeter.get(counted.meter_id);
    if (external_customer_ids === undefined) byMeter.set(counted.meter_id, null);
    else if (known !== null) byMeter.set(counted.meter_id, new Set([...(known ?? []), ...external_customer_ids]));
  }
  return byMeter;
}

/** Rows to delete (`old`), days to recount (`groups`), and the version of each meter. */
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

/** Waits for the recount and for the delete, even if one of them fails, so that none of them still runs when the next attempt begins. */
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

/**
 * Loads the meter whose rows are rebuilt. Undefined while a back-fill counts the past usage of the meter: no query reads its rows, and the
 * back-fill includes corrections.
 */
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

/**
 * Merges the targets, so that each day and customer is listed once: rows written twice would count twice. Null means all customers of the
 * day.
 */
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

type RowsToWrite = { readonly rows: readonly BucketRow[]; readonly getVersion: (meter_id: string) => number };

async function writeRows({ clickhouse }: Stores, { rows, getVersion }: RowsToWrite, own: WriteAttempt): Promise<void> {
  await writeBucketRows(clickhouse, { rows, getVersion }, own);
  const missing = await findMissingBucketRows(clickhouse, rows, { writer: own.writer, since: own.attempt });
  if (missing.length > 0) throw unavailable('the usage store (rows that were written anew are not there)');
}
