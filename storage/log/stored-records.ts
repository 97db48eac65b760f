/** Converts rows of `log_records` to records: the bytes are in the row, or at the position in a segment that the row names. */
import type { Knex } from 'knex';
import type { SegmentFiles, SegmentPosition } from './embedded/segment-files.ts';
import type { LogRecord } from './log.ts';

/** Columns of a `StoredRecordRow`, in this order. */
export const RECORD_COLUMNS = `"offset", kind, tenant_id, environment_id, received_at_us, made_ids, event_count, body,
                segment, position, length, crc32, traceparent`;

type StoredRecordRow = [
  offset: string,
  kind: LogRecord['kind'],
  tenant_id: string,
  environment_id: string,
  received_at_us: string,
  made_ids: string | null,
  event_count: number,
  body: Buffer | null,
  segment: string | null,
  position: string | null,
  length: number | null,
  crc32: string | null,
  traceparent: string | null,
];

/** Loads record rows by the driver below knex, because knex's `?` bindings would copy the bytes once more. */
export async function loadRecordRows(postgres: Knex, question: StoredRecordsStatement): Promise<unknown[][]> {
  const connection = (await postgres.client.acquireConnection()) as PgConnection;
  try {
    const { rows } = await connection.query({ ...question, rowMode: 'array' });
    return rows;
  } finally {
    await postgres.client.releaseConnection(connection);
  }
}

type StoredRecordsStatement = { text: string; values: unknown[]; name?: string };
type PgConnection = { query(question: StoredRecordsStatement & { rowMode: 'array' }): Promise<{ rows: unknown[][] }> };

export async function loadLogRecords(
  partition: number,
  rows: readonly unknown[][],
  segments: SegmentFiles | null,
): Promise<LogRecord[]> {
  const known = rows as StoredRecordRow[];
  const positions = known.filter((row) => row[7] === null).map(toSegmentPosition);
  if (positions.length > 0 && !segments)
    throw new Error('the event log has records in files, and was opened without their directory');
  const stored = (await segments?.read(positions)) ?? [];
  let next = 0;
  return known.map((row) => toLogRecord(partition, row, row[7] ?? stored[next++]!));
}

function toSegmentPosition([, , , , , , , , segment, position, length, crc32]: StoredRecordRow): SegmentPosition {
  return { segment: segment!, position: Number(position), length: length!, crc32: Number(crc32) };
}

function toLogRecord(partition: number, row: StoredRecordRow, body: Buffer): LogRecord {
  const [offset, kind, tenant_id, environment_id, received_at_us, generated_ids, event_count] = row;
  const traceparent = row[12];
  const record: LogRecord = {
    partition,
    offset: BigInt(offset),
    kind,
    tenant_id,
    environment_id,
    received_at_us: Number(received_at_us),
    generated_ids: generated_ids === null ? null : JSON.parse(generated_ids),
    event_count,
    body,
  };
  return traceparent === null ? record : { ...record, traceparent };
}
