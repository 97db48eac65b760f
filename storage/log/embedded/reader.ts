/**
 * Reads a partition of the embedded log in batches. The row lock of an append makes offsets visible in the order of their assignment. A
 * missing record before the end of the log is therefore lost, and is never skipped.
 */
import type { Knex } from 'knex';
import { BATCH_BYTES_MAX, BATCH_RECORDS_MAX } from '../batch-limits.ts';
import {
  checkBounds,
  checkContinues,
  checkSameLog,
  PartitionStopped,
  recordCrc,
  takeUntilHole,
} from '../continuity.ts';
import type { LogRecord, StoredPosition } from '../log.ts';
import { loadLogRecords, loadRecordRows, RECORD_COLUMNS } from '../stored-records.ts';
import { SegmentDamaged, type SegmentFiles } from './segment-files.ts';

export type LogSource = { readonly postgres: Knex; readonly segments: SegmentFiles | null };

/** Checks that this log continues at the offset of the stores; throws otherwise. */
export async function checkStoredPosition(
  { postgres }: LogSource,
  partition: number,
  position: StoredPosition,
): Promise<void> {
  const text = `select p.next_offset, r.body, r.crc32, r.partition is not null
                  from log_partitions p
                  left join log_records r on r.partition = p.partition and r."offset" = $2::bigint - 1
                 where p.partition = $1`;
  const [row] = await loadRecordRows(postgres, { text, values: [partition, String(position.next_offset)] });
  if (!row) throw new PartitionStopped(partition, 'the event log does not have it');
  const [end, body, crc, is_there] = row as [string, Buffer | null, string | null, boolean];
  checkBounds(partition, position, { low: 0n, end: BigInt(end) });
  // Bytes in a file were processed already and need not be readable, because the row has their checksum.
  if (is_there) checkSameLog(partition, position, body === null ? Number(crc) : recordCrc({ body }));
}

/** The next records with about `events_max` events; none at the end of the log. */
export async function readBatch(
  { postgres, segments }: LogSource,
  { partition, from, events_max }: { partition: number; from: bigint; events_max: number },
): Promise<LogRecord[]> {
  const values = [partition, String(from), events_max];
  const rows = await loadRecordRows(postgres, { text: NEXT_RECORDS, values });
  const found = rows.filter((row) => row[0] !== null).map((row) => ({ row, offset: BigInt(row[0] as string) }));
  if (found.length === 0) checkAtEnd(partition, from, BigInt(rows[0]![COLUMNS] as string));
  checkContinues(partition, from, found.slice(0, 1));
  try {
    return await loadLogRecords(
      partition,
      takeUntilHole(found).map(({ row }) => row),
      segments,
    );
  } catch (error) {
    throw error instanceof SegmentDamaged ? new PartitionStopped(partition, error.message) : error;
  }
}

function checkAtEnd(partition: number, from: bigint, end: bigint): void {
  checkBounds(partition, { next_offset: from, min_end_offset: from }, { low: 0n, end });
  if (end === from) return;
  const lost = `the log goes up to ${end}, but the records from there on are not in it`;
  throw new PartitionStopped(partition, `expected the record at offset ${from}: ${lost}`);
}

/** Number of `RECORD_COLUMNS`; the end of the log is the column after them. */
const COLUMNS = 13;

/**
 * Always returns a row with the end of the log, in the same snapshot: an empty result alone does not prove that the log has no more
 * records.
 */
const NEXT_RECORDS = `
  select found.*, p.next_offset
    from log_partitions p
    left join lateral (
      select ${RECORD_COLUMNS}
        from (select *, sum(event_count) over (order by "offset") - event_count as before,
                     sum(bytes) over (order by "offset") - bytes as bytes_before
                from (select *, coalesce(length, octet_length(body)) as bytes from log_records
                       where partition = $1 and "offset" >= $2
                       order by "offset" limit ${BATCH_RECORDS_MAX}) as next_records) as counted
       where before < $3 and bytes_before < ${BATCH_BYTES_MAX}) as found on true
   where p.partition = $1 order by found."offset"`;
