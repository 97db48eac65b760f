/**
 * Writes bucket rows anew from the raw events: after a correction, for a repair, and for a slice whose tokens may be
 * forgotten. It is done by the owner of a partition as the effect of one message or slice, exactly once:
 *
 *   close the gate → no slice is in its bucket rows → recount → take the old rows away → write the new ones → finish, open
 *
 * After a crash the next owner of the partition does all of it again; before that it waits until nothing of the earlier try
 * can still arrive, because the delete and the insert carry a deadline that the engine decides.
 */
import { type BucketRow, withDayRows } from '../core/metering/plan.ts';
import { type Scope, scopeKey } from '../core/scope.ts';
import { closeGateWhenQuiet, type HeldPartition, noteRebuildUntil, openGate } from '../storage/bucket-gate.ts';
import { type EngineClock, tooLate, writeRows } from '../storage/events/rows.ts';
import { usageBuckets } from '../storage/events/tables.ts';
import { daysBefore } from '../storage/slices.ts';
import type { Database, Stores } from '../storage/stores.ts';
import { countedNow, recountDay } from '../storage/usage/recount.ts';
import { snapshotOf } from '../storage/usage/snapshot.ts';
import { countRows, deleteRows, type RowsToDelete } from '../storage/usage/stored-rows.ts';

/** All rows of these customers on a UTC day, of the version of the meter that answers questions. */
export type RebuildTarget = Scope & {
  readonly meter_id: string;
  readonly day: number;
  /** All of the day when absent. */
  readonly external_customer_ids?: readonly string[] | undefined;
};

export type Rebuild = {
  readonly held: HeldPartition;
  readonly clock: EngineClock;
  /** Part of the token of the insert: what this rebuild is, and no other. */
  readonly name: string;
  /** What our own partition's rows hold from now on; where its slices ended when absent. */
  readonly own_before?: bigint;
  /** A version that goes live with this rebuild: its rows are written although nobody reads them yet. */
  readonly settling?: { readonly meter_id: string; readonly version: number } | null;
  /** With the gate closed, before anything is recounted: what else the rows depend on. */
  prepare?(): Promise<void>;
  /** Asked with the gate closed. */
  targets(): Promise<readonly RebuildTarget[]>;
  /** Records the end, in the transaction that opens the gate. */
  finish(transaction: Database): Promise<void>;
};

/** Short, because the next try waits for it. */
const WRITE_WITHIN_S = 15;

export async function rebuildBuckets(stores: Stores, rebuild: Rebuild): Promise<void> {
  const { held, clock } = rebuild;
  const progress = await closeGateWhenQuiet(stores.postgres, held, clock);
  const before = new Map(snapshotOf(progress).before);
  if (rebuild.own_before !== undefined) before.set(held.partition, rebuild.own_before);
  await rebuild.prepare?.();
  const { rows, ...anew } = await recounted(stores, rebuild, before);
  await replaceRows(stores, rebuild, { ...anew, rows: withDayRows(rows, daysBefore(progress)) });
  await openGate(stores.postgres, held, (transaction) => rebuild.finish(transaction));
}

type Recounted = { old: RowsToDelete[]; rows: readonly BucketRow[]; versions: Map<string, number> };

async function recounted(
  stores: Stores,
  { targets, settling }: Rebuild,
  before: ReadonlyMap<number, bigint>,
): Promise<Recounted> {
  const result: Recounted & { rows: BucketRow[] } = { old: [], rows: [], versions: new Map() };
  for (const { day, external_customer_ids, ...target } of merged(await targets())) {
    const { meter_id } = target;
    const version = settling?.meter_id === meter_id ? settling.version : undefined;
    const counted = await countedNow(stores, target, { meter_id, before, settling: version });
    // Nobody reads the rows of a meter whose past is still being counted; the back-fill settles what it meets.
    if (!counted) continue;
    result.old.push({ counted, day, external_customer_ids });
    result.versions.set(counted.meter_id, counted.version);
    for (const row of await recountDay(stores, counted, { day, external_customer_ids })) result.rows.push(row);
  }
  return result;
}

/** Each meter, day and customer once: what is written twice would count twice. */
function merged(targets: readonly RebuildTarget[]): RebuildTarget[] {
  const byKey = new Map<string, RebuildTarget>();
  for (const target of targets) {
    const key = `${scopeKey(target)}/${target.meter_id}/${target.day}`;
    byKey.set(key, { ...target, external_customer_ids: united(byKey.get(key), target) });
  }
  return [...byKey.values()];
}

function united(
  known: RebuildTarget | undefined,
  { external_customer_ids: more }: RebuildTarget,
): readonly string[] | undefined {
  if (known === undefined) return more && [...new Set(more)];
  const { external_customer_ids: some } = known;
  return some && more && [...new Set([...some, ...more])];
}

async function replaceRows(
  { clickhouse, postgres }: Stores,
  { held, clock, name }: Rebuild,
  { old, rows, versions }: Recounted,
): Promise<void> {
  if (old.length === 0) return;
  const deadline_s = clock.now_s() + WRITE_WITHIN_S;
  await noteRebuildUntil(postgres, held, deadline_s);
  await deleteRows(clickhouse, old, deadline_s);
  if (clock.now_s() >= deadline_s || (await countRows(clickhouse, old)) > 0) throw tooLate('usage_buckets');
  // Every try has a token of its own: what an earlier one wrote has just been taken away.
  const token = `rebuild:${name}:${held.partition}:${held.epoch}:${deadline_s}`;
  await writeRows(
    clickhouse,
    usageBuckets((meterId) => versions.get(meterId)!),
    { rows, fence: { token, deadline_s } },
  );
  if (clock.now_s() >= deadline_s) throw tooLate('usage_buckets');
}
