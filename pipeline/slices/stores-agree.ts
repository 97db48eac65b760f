/**
 * Postgres and ClickHouse must have the data of one moment when a partition is taken. If one was restored to an earlier moment than the
 * other, events would be counted twice or be missing. So the partition stops with a reason (docs/operations.md, "Stores of different
 * moments").
 */
import { findLastLedgerRange } from '../../storage/audit/ledger.ts';
import { countRawRows } from '../../storage/audit/offset-ranges.ts';
import {
  type CountedWriters,
  findMissingCorrectionNumbers,
  listCountedWriters,
} from '../../storage/events/known-numbers.ts';
import { findFirstRowFrom } from '../../storage/events/present.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import { PartitionStopped } from '../../storage/log/continuity.ts';
import { findNewestApplied } from '../../storage/progress/corrections.ts';
import { loadGreatestVersions } from '../../storage/progress/meter-versions.ts';
import type { PartitionProgress } from '../../storage/progress/partition-progress.ts';
import { readProgress } from '../../storage/progress/slices.ts';

type AgreeingStores = Pick<Stores, 'postgres' | 'clickhouse'>;

export async function checkStoresAgree(stores: AgreeingStores, state: PartitionProgress): Promise<void> {
  const why =
    (await findRowsAhead(stores, state)) ?? (await findUnknownWriter(stores)) ?? (await findRowsBehind(stores, state));
  if (why === undefined) return;
  const advice = 'restore both stores to one moment (docs/operations.md, "Stores of different moments")';
  throw new PartitionStopped(state.partition, `${why}: the two are of different moments; ${advice}`);
}

/** Finds rows in ClickHouse of log records that Postgres has not processed. If so, Postgres was restored to an earlier moment. */
async function findRowsAhead(
  { clickhouse }: AgreeingStores,
  { partition, next_offset, slice_to }: PartitionProgress,
): Promise<string | undefined> {
  const from = slice_to ?? next_offset;
  const found = await findFirstRowFrom(clickhouse, { partition, from });
  return found === null
    ? undefined
    : `ClickHouse has rows of ${found.table} at offset ${found.offset}, and Postgres says that they end at ${from}`;
}

/** Finds a partition or a meter version whose events ClickHouse has counted, and which Postgres does not know. */
async function findUnknownWriter({ postgres, clickhouse }: AgreeingStores): Promise<string | undefined> {
  const counted = await listCountedWriters(clickhouse);
  return (await findUnknownPartition(postgres, counted)) ?? (await findUnknownVersion(postgres, counted));
}

/**
 * Finds a partition whose events ClickHouse has counted, but which no worker has taken according to Postgres. Its event ids could be accepted
 * again on another partition.
 */
async function findUnknownPartition(postgres: Database, { partitions }: CountedWriters): Promise<string | undefined> {
  // The taken partitions are read after the counted ones: a writer takes its partition before it writes, so every counted partition must be
  // among them.
  const taken = new Set((await readProgress(postgres)).map(({ partition }) => partition));
  const unknown = partitions.find((partition) => !taken.has(partition));
  return unknown === undefined
    ? undefined
    : `ClickHouse has counted events of partition ${unknown}, and Postgres has none of it`;
}

/**
 * Finds a meter version that ClickHouse has counted and Postgres does not know. Postgres would assign its number to another definition.
 */
async function findUnknownVersion(postgres: Database, { versions }: CountedWriters): Promise<string | undefined> {
  const known = await loadGreatestVersions(postgres, [...new Set(versions.map(({ meter_id }) => meter_id))]);
  const unknown = versions.find(({ meter_id, version }) => version > (known.get(meter_id) ?? 0));
  return (
    unknown &&
    `ClickHouse has counted version ${unknown.version} of meter ${unknown.meter_id}, and Postgres knows ${known.get(unknown.meter_id) ?? 0}`
  );
}

/** Finds out whether ClickHouse lacks rows of the newest processed records. If it does, ClickHouse was restored to an earlier moment. */
async function findRowsBehind(
  { postgres, clickhouse }: AgreeingStores,
  { partition }: PartitionProgress,
): Promise<string | undefined> {
  const tail = await findLastLedgerRange(postgres, partition);
  if (tail && tail.settled.stored > 0) {
    const [rows] = await countRawRows(clickhouse, [tail]);
    if (rows! < tail.settled.stored)
      return `Postgres says that ${tail.settled.stored} events of the offsets ${tail.from} to ${tail.to} are stored, and ClickHouse has ${rows} of them`;
  }
  const newest = await findNewestApplied(postgres, partition);
  const [missing] = await findMissingCorrectionNumbers(clickhouse, newest);
  return missing && `Postgres says that correction ${missing} is applied, and ClickHouse does not have it`;
}
