/**
 * Table `slice_ledger` for the audit: the outcome of the records of each partition, in contiguous ranges of offsets. A range is immutable,
 * except the newest of a partition, which grows in the statement that advances next_offset. So a range is complete when it is read, and its
 * rows can be compared while others arrive.
 */
import type { Database } from '../foundation/stores.ts';

/** Offsets of one partition, half-open. */
export type OffsetRange = { readonly partition: number; readonly from: bigint; readonly to: bigint };

/** Outcomes of the events in the range; unknown if an earlier version wrote them. */
export type SliceEventCounts = {
  readonly events: number;
  readonly stored: number;
  readonly duplicates: number;
  readonly conflicts: number;
  readonly dead_letters: number;
};

export type LedgerRange = OffsetRange & { readonly settled: SliceEventCounts };

export async function listLedgerRanges(
  database: Database,
  { after, limit }: { after: OffsetRange | null; limit: number },
): Promise<LedgerRange[]> {
  const behind = after ? 'where (partition, from_offset) > (:partition, :from)' : '';
  const { rows } = await database.raw(
    `select * from slice_ledger ${behind} order by partition, from_offset limit :limit`,
    { ...(after ? { partition: after.partition, from: String(after.from) } : {}), limit },
  );
  return rows.map(toLedgerRange);
}

/** Finds the current bounds of a range: the newest range of a partition may have grown. */
export async function findLedgerRange(
  database: Database,
  { partition, from }: OffsetRange,
): Promise<LedgerRange | undefined> {
  const { rows } = await database.raw(`select * from slice_ledger where partition = ? and from_offset = ?`, [
    partition,
    String(from),
  ]);
  return rows.map(toLedgerRange)[0];
}

export async function listNewestLedgerRanges(database: Database): Promise<LedgerRange[]> {
  const { rows } = await database.raw(
    `select distinct on (partition) * from slice_ledger order by partition, from_offset desc`,
  );
  return rows.map(toLedgerRange);
}

export async function findLastLedgerRange(database: Database, partition: number): Promise<LedgerRange | undefined> {
  const { rows } = await database.raw(
    `select * from slice_ledger where partition = ? order by from_offset desc limit 1`,
    [partition],
  );
  return rows.map(toLedgerRange)[0];
}

/** Finds the last range of a partition that ends at or before an offset. */
export async function findLedgerRangeUpTo(
  database: Database,
  { partition, offset }: { partition: number; offset: bigint },
): Promise<LedgerRange | undefined> {
  const { rows } = await database.raw(
    `select * from slice_ledger where partition = ? and to_offset <= ? order by to_offset desc limit 1`,
    [partition, String(offset)],
  );
  return rows.map(toLedgerRange)[0];
}

export type LedgerSums = { readonly ranges: number; readonly events: number };

export async function loadLedgerSums(database: Database): Promise<LedgerSums> {
  const { rows } = await database.raw(
    `select count(*) as ranges, coalesce(sum(events), 0) as events from slice_ledger`,
  );
  return { ranges: Number(rows[0].ranges), events: Number(rows[0].events) };
}

/** Lists the offsets before the first range: records of an earlier version, which had no ledger. */
export async function listUncountedRanges(database: Database): Promise<OffsetRange[]> {
  const { rows } = await database.raw(
    `select s.partition, 0 as from_offset, coalesce(l.first, s.next_offset) as to_offset
       from slices s left join (select partition, min(from_offset) as first from slice_ledger group by partition) l using (partition)
      where coalesce(l.first, s.next_offset) > 0 order by s.partition`,
  );
  return rows.map(toOffsetRange);
}

export type LedgerFault = OffsetRange & { readonly kind: 'ledger_gap' | 'ledger_overlap' | 'ledger_end' };

/**
 * Reads one snapshot, because it is one statement. Finds ranges that do not begin at the end of the previous one, and a last range that
 * does not end at next_offset.
 */
export async function findLedgerFaults(database: Database, limit: number): Promise<LedgerFault[]> {
  const { rows } = await database.raw(
    `with ranges as (
       select partition, from_offset, to_offset, lag(to_offset) over (partition by partition order by from_offset) as before
         from slice_ledger),
     ends as (select partition, max(to_offset) as ends from slice_ledger group by partition)
     select partition, 'ledger_gap' as kind, before as from_offset, from_offset as to_offset from ranges where before < from_offset
     union all
     select partition, 'ledger_overlap', from_offset, before from ranges where before > from_offset
     union all
     select partition, 'ledger_end', ends.ends, coalesce(s.next_offset, 0)
       from ends left join slices s using (partition) where ends.ends is distinct from s.next_offset
     order by 1, 3 limit ?`,
    [limit],
  );
  return rows.map((row: LedgerRow & { kind: LedgerFault['kind'] }) => ({ ...toOffsetRange(row), kind: row.kind }));
}

/** Counts, by partition, the records before next_offset that no range of the ledger contains; it should be 0. */
export async function countUnaccountedRecords(database: Database): Promise<{ partition: number; records: number }[]> {
  const { rows } = await database.raw(
    `select s.partition, s.next_offset - min(l.from_offset) - sum(l.records) as records
       from slices s join slice_ledger l using (partition) group by s.partition order by s.partition`,
  );
  return rows.map((row: { partition: number; records: string }) => ({
    partition: row.partition,
    records: Number(row.records),
  }));
}

/**
 * Lists events that were rejected after their raw row was written. The row stays and is voided; the ledger counts the event as a dead
 * letter.
 */
export async function listSetAsideEvents(
  database: Database,
  ranges: readonly OffsetRange[],
): Promise<LogEventPosition[]> {
  const { rows } = await database.raw(
    `select p.partition, p."offset", p.position from poison_events p
       join unnest(?::int[], ?::bigint[], ?::bigint[]) as r (partition, from_offset, to_offset)
         on r.partition = p.partition and p."offset" >= r.from_offset and p."offset" < r.to_offset`,
    [
      ranges.map(({ partition }) => partition),
      ranges.map(({ from }) => String(from)),
      ranges.map(({ to }) => String(to)),
    ],
  );
  return rows.map((row: { partition: number; offset: string; position: number }) => ({
    partition: row.partition,
    offset: BigInt(row.offset),
    position: row.position,
  }));
}

/** Position of an event in the log. */
export type LogEventPosition = { readonly partition: number; readonly offset: bigint; readonly position: number };

type LedgerRow = { partition: number; from_offset: string; to_offset: string } & Record<keyof SliceEventCounts, string>;

function toOffsetRange({ partition, from_offset, to_offset }: LedgerRow): OffsetRange {
  return { partition, from: BigInt(from_offset), to: BigInt(to_offset) };
}

function toLedgerRange(row: LedgerRow): LedgerRange {
  const { events, stored, duplicates, conflicts, dead_letters } = row;
  return {
    ...toOffsetRange(row),
    settled: {
      events: Number(events),
      stored: Number(stored),
      duplicates: Number(duplicates),
      conflicts: Number(conflicts),
      dead_letters: Number(dead_letters),
    },
  };
}
