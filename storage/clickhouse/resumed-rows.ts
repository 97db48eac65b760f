/**
 * Rows of a long answer for a reader that may be slow: a client that downloads a file, or a store that receives one. A statement
 * occupies one of few slots, so it does not stay open for a reader that does not read (docs/decisions/0021-fairness.md).
 */
import { type ClickHouseClient, type LongStatement, streamRows } from './clickhouse.ts';

/** Maximum total delay of a reader relative to `PACE_BYTES_PER_MS`. Up to this delay one statement returns the whole answer. */
const PATIENCE_MS = 1_000;
const PACE_BYTES_PER_MS = 4_194;
/** Size of a page. A slow reader gets the rows in pages, one statement each. */
const PAGE_BYTES = 4 * 1_048_576;

type ResumeOptions = { readonly signal?: AbortSignal | undefined; readonly patience_ms?: number };

/**
 * Yields some rows at a time. `statementAfter` returns the statement for the rows after `last`, or for all rows, in one order.
 * Repeated statements must give equal rows.
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
        // The timer counts whole milliseconds from the start of its event-loop tick, so it may fire slightly early.
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

/** Estimates the size of rows by their text cells, which are most of it. */
function countBytes(rows: readonly (readonly unknown[])[]): number {
  let bytes = 0;
  for (const row of rows) for (const cell of row) if (typeof cell === 'string') bytes += cell.length;
  return bytes;
}
