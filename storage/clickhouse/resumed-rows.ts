/**
 * Rows of a long answer for whoever may be slow to take them: a client that reads a file, or a store that it is written to. A statement works on
 * few at a time, so none of them is held for somebody who does not read (docs/decisions/0021-fairness.md).
 */
import { type ClickHouseClient, type LongStatement, streamRows } from './clickhouse.ts';

/** So much longer than at this pace a reader is waited for in all while a statement stands; who keeps it has the whole answer from one. */
const PATIENCE_MS = 1_000;
const PACE_BYTES_PER_MS = 4_194;
/** Then so much is read at a time, and the statement ended. */
const PAGE_BYTES = 4 * 1_048_576;

export type ResumeOptions = { readonly signal?: AbortSignal | undefined; readonly patience_ms?: number };

/**
 * Some rows at a time. `questionAfter` asks for the rows behind this one, or for all of them, in one order; what it answers must stay the same
 * however often it is asked.
 */
export async function* streamResumableRows<Row extends readonly unknown[]>(
  client: ClickHouseClient,
  statementAfter: (last: Row | null) => LongStatement,
  { signal, patience_ms = PATIENCE_MS }: ResumeOptions = {},
): AsyncGenerator<readonly Row[]> {
  let last: Row | null = null;
  let left_ms = patience_ms;
  for (;;) {
    const ended = new AbortController();
    const abort_signal = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal;
    const page: Row[] = [];
    let bytes = 0;
    let isBroken = false;
    for await (const rows of streamRows<Row>(client, { ...statementAfter(last), abort_signal })) {
      if (rows.length === 0) continue;
      if (left_ms > 0) {
        const since = performance.now();
        left_ms += countBytes(rows) / PACE_BYTES_PER_MS;
        const timer = setTimeout(() => ended.abort(), left_ms);
        try {
          yield rows;
        } finally {
          clearTimeout(timer);
        }
        last = rows.at(-1)!;
        left_ms = Math.min(left_ms - (performance.now() - since), patience_ms);
        // The timer goes by whole milliseconds since its turn of the event loop began, and may be a little before.
        if (ended.signal.aborted) left_ms = 0;
        isBroken = left_ms <= 0;
      } else {
        page.push(...rows);
        bytes += countBytes(rows);
        isBroken = bytes >= PAGE_BYTES;
      }
      if (isBroken) break;
    }
    if (page.length > 0) {
      last = page.at(-1)!;
      yield page;
    }
    if (!isBroken) return;
  }
}

/** Of its texts, which are what takes room. */
function countBytes(rows: readonly (readonly unknown[])[]): number {
  let bytes = 0;
  for (const row of rows) for (const cell of row) if (typeof cell === 'string') bytes += cell.length;
  return bytes;
}
