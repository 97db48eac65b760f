/**
 * How the pipeline's results are written to ClickHouse: one insert of one block per table and slice. The statement carries
 * the token of the slice, so that writing it again is a no-op, and a deadline that the engine's own clock decides: a worker
 * that was frozen and wakes up too late writes nothing (ARCHITECTURE.md, "Exactly once").
 */
import { Readable } from 'node:stream';
import { FarthingError } from '../../core/error.ts';
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';
import { type Column, nativeBlock } from './native.ts';
import type { RowTarget } from './tables.ts';

export type Fence = {
  /** The same for every try of the same content. */
  readonly token: string;
  /** Seconds since 1970 on the engine's clock. */
  readonly deadline_s: number;
};

/** Writes all rows as one block, or nothing; resolves only when they are certain to be there. */
export async function writeRows<Row>(
  clickhouse: ClickHouseClient,
  target: RowTarget<Row>,
  { rows, fence }: { rows: readonly Row[]; fence: Fence },
): Promise<void> {
  if (rows.length === 0) return;
  const columns = target.columns.filter(({ rare }) => rare === undefined || rows.some(rare.has));
  try {
    const { stream } = await clickhouse.exec({
      query: `${insertOf(target, columns)} WHERE toUnixTimestamp(nowInBlock()) < ${fence.deadline_s} FORMAT Native`,
      values: Readable.from(nativeBlock(columns, rows), { objectMode: false }),
      clickhouse_settings: { ...ONE_BLOCK, insert_deduplication_token: `${target.table}:${fence.token}` },
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
    const answer = await clickhouse.query({
      query: 'select toString(toUnixTimestamp64Milli(now64(3))) as ms',
      format: 'JSONEachRow',
    });
    const [row] = await answer.json<{ ms: string }>();
    // The engine read its clock after we asked: what we take for its time is never behind it, so an insert that we believe
    // to have come in time has.
    this.#offset_ms = Number(row!.ms) - before;
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
  max_threads: 1,
  async_insert: 0 as const,
  // Events may be of any time: a block of a hundred months is written like any other.
  max_partitions_per_insert_block: '0',
  // The rows of a block are distinct already; the merges combine them with those of others.
  optimize_on_insert: 0 as const,
};

/** What the block has, and the neutral values of what it goes without. */
function insertOf<Row>(target: RowTarget<Row>, present: readonly Column<Row>[]): string {
  const structure = present.map((column) => `${column.name} ${column.type}`).join(', ');
  const filled = target.columns.flatMap((column) => {
    if (present.includes(column)) return [{ name: column.name, value: column.name }];
    const neutral = column.rare?.neutral;
    return neutral === undefined ? [] : [{ name: column.name, value: neutral }];
  });
  const names = filled.map(({ name }) => name).join(', ');
  const values = filled.map(({ value }) => value).join(', ');
  return `INSERT INTO ${target.table} (${names}) SELECT ${values} FROM input('${structure.replaceAll("'", "\\'")}')`;
}
