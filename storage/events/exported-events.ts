/**
 * Reads all current events of a time range, for an export. `marks` limit it to events and corrections before these offsets of the log: an
 * event that is corrected meanwhile then appears exactly once, even if a slow reader gets the rows by several statements. Uncorrected
 * events come first in the order of the table (customer, name and time), which needs no sort. Replacements follow.
 */

import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import type { ExportedEvent } from '../../core/platform/export/events.ts';
import { type ClickHouseClient, streamRows, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { streamResumableRows } from '../clickhouse/resumed-rows.ts';
import type { CutParts } from '../models/reporting/export-cuts.ts';

type EventsOfTime = Scope & {
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly signal?: AbortSignal | undefined;
  /**
   * Cut of a scheduled file: the records that existed when its content was fixed
   * (storage/models/reporting/export-cuts.ts).
   */
  readonly cut?: CutParts | null | undefined;
  /** First excluded offset of each partition. If absent, all events are included. */
  readonly marks?: Readonly<Record<string, string>> | undefined;
};

const SCOPE = 'tenant_id = {tenant_id:String} and environment_id = {environment_id:String}';
const between = (start: string, end: string) =>
  `timestamp >= fromUnixTimestamp64Micro({${start}:Int64}, 'UTC') and timestamp < fromUnixTimestamp64Micro({${end}:Int64}, 'UTC')`;
const WANTED = `${SCOPE} and ${between('start_us', 'end_us')}`;
const COLUMNS = `event_id, event_name, external_customer_id, customer_id, toUnixTimestamp64Micro(timestamp) as at_us,
  toUnixTimestamp64Micro(received_at) as got_us, source, properties`;
/** SQL for the bound of a row's offset: the offset that is listed for the row's partition; 0 if there is none. */
const below = (partitions: string, offsets: string) =>
  `transform(partition, {${partitions}:Array(UInt16)}, {${offsets}:Array(UInt64)}, toUInt64(0))`;
const COUNTED = `({has_marks:Bool} = false or offset < ${below('mark_partitions', 'marks')})`;
const CORRECTED = `select event_id from event_corrections where ${SCOPE} and ${COUNTED}`;
const LATEST = `action = 'replace' and ${COUNTED}
       and (event_id, sequence) in (
         select event_id, max(sequence) from event_corrections where ${SCOPE} and ${COUNTED} group by event_id)`;

/** SQL condition: the row follows the last one that was read. */
const AFTER = `({has_last:Bool} = false or (external_customer_id >= {last_customer:String}
       and (external_customer_id, event_name, timestamp, event_id)
         > ({last_customer:String}, {last_name:String}, fromUnixTimestamp64Micro({last_us:Int64}, 'UTC'), {last_id:String})))`;
const AFTER_ID = '({has_last:Bool} = false or event_id > {last_id:String})';

const asSent = (wanted: string) => `
  select ${COLUMNS} from events where ${wanted} and ${COUNTED} and event_id not in (${CORRECTED}) and ${AFTER}
   order by tenant_id, environment_id, external_customer_id, event_name, timestamp, event_id`;

const corrected = (wanted: string) => `
  select * from (select ${COLUMNS} from event_corrections where ${wanted} and ${LATEST} and ${AFTER_ID} limit 1 by event_id)
   order by event_id`;

/** Statements that are read one after the other. */
const PARTS = [asSent(WANTED), corrected(WANTED)];

/** Cut offset of a row's partition; compared with its offset in the log. */
const before = (offsets: string) => below('partitions', offsets);
const THERE = `offset < ${before('until')}`;
const LATE = `${SCOPE} and ${between('first_us', 'start_us')} and offset >= {least:UInt64} and offset >= ${before('known')} and ${THERE}`;
const IN_TIME = `${WANTED} and ${THERE}`;
const selectReplaced = (wanted: string) => `select event_id from events where ${wanted} and event_id in (${CORRECTED})`;

/**
 * Statements of a scheduled file. A corrected event is in the file of the original event, with its current content, so each event is in one
 * file.
 */
const FILE_PARTS = [
  asSent(LATE),
  asSent(IN_TIME),
  corrected(`${SCOPE} and (event_id in (${selectReplaced(LATE)}) or event_id in (${selectReplaced(IN_TIME)}))`),
];

function cutParams({ first_us, before: known, until }: CutParts) {
  const partitions = Object.keys(until.offsets);
  const knownOffsets = partitions.map((partition) => BigInt(known.offsets[partition] ?? 0));
  const least = knownOffsets.reduce((least, offset) => (offset < least ? offset : least), knownOffsets[0] ?? 0n);
  return {
    first_us,
    partitions: partitions.map(Number),
    known: knownOffsets,
    until: Object.values(until.offsets).map(BigInt),
    least,
  };
}

/** Selects the length in bytes of the longest properties of uncorrected events; 0 if there are none. */
const selectLongest = (wanted: string) => `select toUInt32(max(length(properties))) from events where ${wanted}`;
const LONGEST = selectLongest(WANTED);
const LONGEST_IN_FILE = selectLongest(`${SCOPE} and ((${LATE}) or (${IN_TIME}))`);

/** Yields batches of rows as they arrive. */
export async function* streamExportedEvents(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id, start_us, end_us, signal, cut, marks }: EventsOfTime,
): AsyncGenerator<readonly ExportedEvent[]> {
  const range = { tenant_id, environment_id, start_us, end_us, ...(cut ? cutParams(cut) : {}), ...marksParams(marks) };
  const options = { query_params: range, settings: FEW_STREAMS, ...(signal ? { abort_signal: signal } : {}) };
  try {
    let longest = 0;
    for await (const rows of streamRows<[number]>(clickhouse, { ...options, query: cut ? LONGEST_IN_FILE : LONGEST }))
      for (const [bytes] of rows) longest = bytes;
    const settings = { ...FEW_STREAMS, max_block_size: String(rowsPerBlock(longest)) };
    for (const query of cut ? FILE_PARTS : PARTS) {
      const questionAfter = (last: ExportedEvent | null) => ({
        query,
        query_params: { ...range, ...lastParams(last) },
        settings,
      });
      yield* streamResumableRows<ExportedEvent>(clickhouse, questionAfter, { signal });
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw toClickHouseFailure('exported events', error);
  }
}

function marksParams(marks: EventsOfTime['marks']) {
  const [partitions, offsets] = [Object.keys(marks ?? {}), Object.values(marks ?? {})];
  return { has_marks: marks !== undefined, mark_partitions: partitions.map(Number), marks: offsets.map(BigInt) };
}

function lastParams(last: ExportedEvent | null) {
  const [last_id = '', last_name = '', last_customer = '', , last_us = 0] = last ?? [];
  return { has_last: last !== null, last_id, last_name, last_customer, last_us };
}

/** Limits the threads of a statement: blocks that are read in parallel are in memory at once, and other queries need the cores, too. */
const FEW_STREAMS = { max_threads: 2 } as const;

const ROWS_PER_BLOCK = 8_192;
const BYTES_PER_BLOCK = 4 * 1_048_576;

/**
 * Maximum number of rows per block. When the store merges parts in table order, it limits blocks by rows and not by bytes, and has one
 * block per part in memory. The limit holds even if every row has the longest event.
 */
function rowsPerBlock(longest_bytes: number): number {
  return Math.max(1, Math.min(ROWS_PER_BLOCK, Math.floor(BYTES_PER_BLOCK / Math.max(1, longest_bytes))));
}
