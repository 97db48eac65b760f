/** The embedded log against the ledger: every accepted event must have an outcome, or wait. */
import type { Database } from '../foundation/stores.ts';

export type LogAccount = {
  readonly partition: number;
  /** Numbers of events: appended, with an outcome in the ledger, and waiting. The first must be the sum of the others. */
  readonly accepted: number;
  readonly settled: number;
  readonly waiting: number;
  /** The stores contain everything before next_offset; log_end is the exclusive end of the log. */
  readonly next_offset: bigint;
  readonly log_end: bigint;
  /** Records from next_offset on. */
  readonly waiting_records: number;
};

/** Reads the counts of the embedded log in one statement, so in one snapshot. Returns none for another kind of log. */
export async function logAccounts(database: Database): Promise<LogAccount[]> {
  const { rows } = await database.raw(
    `select p.partition, p.accepted_events, coalesce(l.events, 0) as settled, w.events as waiting,
            coalesce(s.next_offset, 0) as next_offset, p.next_offset as log_end, w.records as waiting_records
       from log_partitions p
       left join slices s using (partition)
       left join (select partition, sum(events) as events from slice_ledger group by partition) l using (partition)
      cross join lateral (
        select coalesce(sum(r.event_count), 0) as events, count(*) as records from log_records r
         where r.partition = p.partition and r."offset" >= coalesce(s.next_offset, 0)) w
      order by p.partition`,
  );
  return rows.map((row: Record<string, string>) => ({
    partition: Number(row.partition),
    accepted: Number(row.accepted_events),
    settled: Number(row.settled),
    waiting: Number(row.waiting),
    next_offset: BigInt(row.next_offset!),
    log_end: BigInt(row.log_end!),
    waiting_records: Number(row.waiting_records),
  }));
}

/** Number of accepted events that neither have an outcome nor wait; negative if there are more outcomes than accepted events. */
export function countUnaccountedEvents({ accepted, settled, waiting }: LogAccount): number {
  return accepted - settled - waiting;
}

/** Finds the first offset from next_offset on that has no record. */
export async function findFirstMissingRecord(
  database: Database,
  { partition, next_offset }: LogAccount,
): Promise<bigint | undefined> {
  const { rows } = await database.raw(
    `select before + 1 as missing from (
       select "offset", lag("offset", 1, ?::bigint - 1) over (order by "offset") as before from (
         select "offset" from log_records where partition = ? and "offset" >= ?
         union all select next_offset from log_partitions where partition = ?) as records) as pairs
      where "offset" > before + 1 order by 1 limit 1`,
    [String(next_offset), partition, String(next_offset), partition],
  );
  return rows[0] === undefined ? undefined : BigInt(rows[0].missing);
}

/** Whether this Postgres contains the log, or did. A service that was never started has no log yet, and no progress either. */
export async function hasEmbeddedLog(database: Database): Promise<boolean> {
  const { rows } = await database.raw(
    `select exists (select from log_partitions) or not exists (select from slices) as found`,
  );
  return rows[0].found;
}
