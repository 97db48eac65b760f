/**
 * Buffers the records that this process has just made durable, until its own consumer takes them: reading them from Postgres would cost
 * more than writing them. They are returned only if they continue the consumed records without a gap. All other records are read from the
 * table.
 */
import { BATCH_BYTES_MAX, BATCH_RECORDS_MAX } from './batch-limits.ts';
import type { LogRecord } from './log.ts';

const RETAINED_BYTES_MAX = 64 * 1024 * 1024;

export class RecentRecords {
  #records: LogRecord[] = [];
  #bytes = 0;

  /**
   * Adds the record if it directly follows the last one and the buffer has room. Otherwise the buffer accepts no further record until it is
   * empty.
   */
  add(record: LogRecord): void {
    const last = this.#records.at(-1);
    if (last && record.offset !== last.offset + 1n) return;
    if (this.#bytes + record.body.length > RETAINED_BYTES_MAX) return;
    this.#records.push(record);
    this.#bytes += record.body.length;
  }

  /** Records from `offset` on, with about `eventsMax` events; none if the record at `offset` is missing. */
  take(offset: bigint, eventsMax: number): LogRecord[] {
    let from = 0;
    while (from < this.#records.length && this.#records[from]!.offset < offset) from++;
    let to = from;
    if (this.#records[from]?.offset === offset) {
      const end = Math.min(this.#records.length, from + BATCH_RECORDS_MAX);
      for (let events = 0, bytes = 0; to < end && events < eventsMax && bytes < BATCH_BYTES_MAX; to++) {
        events += this.#records[to]!.event_count;
        bytes += this.#records[to]!.body.length;
      }
    }
    const taken = this.#records.slice(from, to);
    for (const gone of this.#records.slice(0, to)) this.#bytes -= gone.body.length;
    this.#records = this.#records.slice(to);
    return taken;
  }
}
