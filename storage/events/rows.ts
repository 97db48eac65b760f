/**
 * How the pipeline's results are written to ClickHouse: tab-separated text, each value escaped, one insert per table and
 * slice. The statement carries the token of the slice, so that writing it again is a no-op, and a deadline that the
 * engine's own clock decides: a worker that was frozen and wakes up too late writes nothing (ARCHITECTURE.md, "Exactly once").
 */
import { Readable } from 'node:stream';
import { FarthingError } from '../../core/error.ts';
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';

/** One table as the pipeline fills it: columns, the structure of the text, and what each column becomes of it. */
export type RowTarget = {
  readonly table: string;
  readonly columns: readonly { name: string; type: string; as?: string }[];
};

export type Fence = {
  /** The same for every try of the same content. */
  readonly token: string;
  /** Seconds since 1970 on the engine's clock. */
  readonly deadline_s: number;
};

/** Writes all lines as one block, or nothing; resolves only when they are certain to be there. */
export async function writeRows(
  clickhouse: ClickHouseClient,
  target: RowTarget,
  rows: { lines: readonly string[]; fence: Fence },
): Promise<void> {
  if (rows.lines.length === 0) return;
  const { token, deadline_s } = rows.fence;
  try {
    const { stream } = await clickhouse.exec({
      query: `${insertOf(target)} WHERE toUnixTimestamp(nowInBlock()) < ${deadline_s} FORMAT TabSeparated`,
      values: Readable.from([Buffer.from(rows.lines.join(''), 'utf8')], { objectMode: false }),
      clickhouse_settings: { ...ONE_BLOCK, insert_deduplication_token: `${target.table}:${token}` },
    });
    for await (const _chunk of stream) {
      // The answer of an insert is empty; reading it to its end frees the connection.
    }
  } catch (error) {
    throw clickhouseFailure(`insert into ${target.table}`, error);
  }
}

/** The engine's clock against ours: the deadline of an insert is decided there. */
export class EngineClock {
  #offset_ms = 0;

  async synchronise(clickhouse: ClickHouseClient): Promise<void> {
    const before = performance.now();
    const answer = await clickhouse.query({ query: 'select toString(toUnixTimestamp64Milli(now64(3))) as ms', format: 'JSONEachRow' });
    const [row] = await answer.json<{ ms: string }>();
    // The answer is at least as old as it was on its way: erring to an earlier deadline is the safe side.
    this.#offset_ms = Number(row!.ms) - performance.now() + Math.min(0, before);
  }

  /** Seconds since 1970 that the engine's clock shows now, rounded up. */
  now_s(): number {
    return Math.ceil((performance.now() + this.#offset_ms) / 1000);
  }
}

/** Thrown when an insert may have come too late: nothing is lost, the slice is planned and written again. */
export function tooLate(table: string): FarthingError {
  return new FarthingError('service_unavailable', `an insert into ${table} missed its deadline, it is tried again`);
}

const ONE_BLOCK = {
  input_format_parallel_parsing: 0 as const,
  max_insert_threads: '1',
  async_insert: 0 as const,
};

const insertTexts = new WeakMap<RowTarget, string>();

function insertOf(target: RowTarget): string {
  let text = insertTexts.get(target);
  if (!text) {
    const structure = target.columns.map((column) => `${column.name} ${column.type}`).join(', ');
    const names = target.columns.map((column) => column.name).join(', ');
    const values = target.columns.map((column) => (column.as ? `${column.as}` : column.name)).join(', ');
    text = `INSERT INTO ${target.table} (${names}) SELECT ${values} FROM input('${structure.replaceAll("'", "\\'")}')`;
    insertTexts.set(target, text);
  }
  return text;
}

const NEEDS_ESCAPE = /[\t\n\r\\\0]/;
const ESCAPES: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\', '\0': '\\0' };

/** A text as one value of a tab-separated line. */
export function escaped(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the control characters are what must be escaped.
  return NEEDS_ESCAPE.test(text) ? text.replace(/[\t\n\r\\\0]/g, (sign) => ESCAPES[sign]!) : text;
}
