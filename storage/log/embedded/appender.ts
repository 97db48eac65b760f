/**
 * Appends groups of entries to the embedded log, each group atomically. If the log has files, the bytes are written there first and the
 * rows after them. The bytes of a small group remain in the rows, because a second wait for the disk would delay a single event more.
 */
import type { Knex } from 'knex';
import { IN_NO_ANSWER } from '../../postgres/interceptors/own-writes.ts';
import type { LogEntry, LogRecord } from '../log.ts';
import { loadRecordRows } from '../stored-records.ts';
import type { SegmentFiles, SegmentPosition } from './segment-files.ts';

/** Size of a group up to which its bytes are in Postgres. Measured: small groups are durable sooner in Postgres, at no higher cost. */
const INLINE_BYTES_MAX = 32 * 1024;

export class EmbeddedAppender {
  readonly #postgres: Knex;
  readonly #segments: SegmentFiles | null;
  readonly #inlineBytesMax: number;

  constructor(postgres: Knex, segments: SegmentFiles | null, options: { inline_bytes_max?: number }) {
    this.#postgres = postgres;
    this.#segments = segments;
    this.#inlineBytesMax = options.inline_bytes_max ?? INLINE_BYTES_MAX;
  }

  /** Callers append one group at a time. */
  async append(entries: readonly LogEntry[]): Promise<LogRecord[]> {
    const segments = this.#segments;
    const bodies = entries.map((entry) => entry.body);
    const bytes = bodies.reduce((total, body) => total + body.length, 0);
    const positions = segments && bytes > this.#inlineBytesMax ? await segments.write(bodies) : null;
    return insertRows(this.#postgres, { entries, positions, is_named: segments !== null });
  }
}

type AppendRows = {
  entries: readonly LogEntry[];
  positions: readonly SegmentPosition[] | null;
  /**
   * Whether the statement is named, so that each connection parses and plans it once. Behind a pooler it must be unnamed, because the
   * pooler lends the connection to other clients.
   */
  is_named: boolean;
};

/** Inserts the rows of a group. Their offsets are assigned under the row locks of the partitions, in partition order. */
async function insertRows(postgres: Knex, { entries, positions, is_named }: AppendRows): Promise<LogRecord[]> {
  const ordinals = computeOrdinals(entries);
  const values = [
    entries.map((entry) => entry.partition),
    ordinals,
    entries.map((entry) => entry.kind),
    entries.map((entry) => entry.tenant_id),
    entries.map((entry) => entry.environment_id),
    entries.map((entry) => entry.received_at_us),
    entries.map((entry) => (entry.generated_ids === null ? null : JSON.stringify(entry.generated_ids))),
    entries.map((entry) => entry.event_count),
    ...(positions ? inSegments(positions) : inRows(entries)),
    listTraceparents(entries),
  ];
  const question = { text: INSERT, values };
  const rows = await loadRecordRows(postgres, is_named ? { ...question, name: 'farthing_append' } : question);
  if (rows[0]?.[2] !== entries.length) throw new Error('the event log has no such partition');
  const firsts = new Map((rows as [number, string, number][]).map(([partition, first]) => [partition, BigInt(first)]));
  return entries.map((entry, index) => ({ ...entry, offset: firsts.get(entry.partition)! + BigInt(ordinals[index]!) }));
}

/** Lists the trace of each entry; null if none is traced, because `unnest` fills a missing list with nulls. */
function listTraceparents(entries: readonly LogEntry[]): (string | null)[] | null {
  const isTraced = entries.some((entry) => entry.traceparent !== undefined);
  return isTraced ? entries.map((entry) => entry.traceparent ?? null) : null;
}

/** Position of each entry among the entries of its partition. */
function computeOrdinals(entries: readonly LogEntry[]): number[] {
  const counts = new Map<number, number>();
  return entries.map(({ partition }) => {
    const ordinal = counts.get(partition) ?? 0;
    counts.set(partition, ordinal + 1);
    return ordinal;
  });
}

function inSegments(positions: readonly SegmentPosition[]): unknown[] {
  return [
    positions.map((position) => position.segment),
    positions.map((position) => position.position),
    positions.map((position) => position.length),
    positions.map((position) => position.crc32),
    null,
  ];
}

/**
 * Builds the parameters of an insert. All bodies are one parameter, of which each row takes its part, because an array of bodies would be
 * sent as text.
 */
function inRows(entries: readonly LogEntry[]): unknown[] {
  let at = 0;
  const positions = entries.map(({ body }) => {
    const position = at;
    at += body.length;
    return position;
  });
  const bodies = entries.map(({ body }) => body);
  const nothing = entries.map(() => null);
  return [
    nothing,
    positions,
    bodies.map((body) => body.length),
    nothing,
    bodies.length === 1 ? bodies[0] : Buffer.concat(bodies),
  ];
}

const INSERT = `
  with given as (
    select * from unnest($1::int[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::int[],
                         $9::bigint[], $10::bigint[], $11::int[], $12::bigint[], $14::text[])
      as e (partition, ordinal, kind, tenant_id, environment_id, received_at_us, made_ids, event_count,
            segment, position, length, crc32, traceparent)),
  wanted as (select partition, count(*) as amount, sum(event_count) as events from given group by partition),
  locked as (select p.partition from log_partitions p join wanted using (partition) order by p.partition for update of p),
  slots as (update log_partitions p set next_offset = p.next_offset + w.amount, accepted_events = p.accepted_events + w.events
              from wanted w, locked l
             where p.partition = w.partition and l.partition = w.partition
         returning p.partition, p.next_offset - w.amount as first),
  written as (
    insert into log_records (partition, "offset", kind, tenant_id, environment_id, received_at_us, made_ids, event_count,
                             body, segment, position, length, crc32, traceparent)
    select e.partition, s.first + e.ordinal, e.kind, e.tenant_id, e.environment_id, e.received_at_us, e.made_ids, e.event_count,
           case when e.segment is null then substring($13::bytea from e.position::int + 1 for e.length) end,
           e.segment, case when e.segment is not null then e.position end,
           case when e.segment is not null then e.length end, e.crc32, e.traceparent
      from given e join slots s using (partition) returning partition)
  select partition, first, (select count(*) from written)::int from slots ${IN_NO_ANSWER}`;
