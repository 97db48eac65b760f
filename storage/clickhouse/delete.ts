/** Takes rows away: every statement of ours that does so is made here. */
import { unavailable } from '../../core/error.ts';
import { type ClickHouseClient, ClickHouseError, toClickHouseFailure } from './clickhouse.ts';

export type RowsToTake = {
  readonly table: string;
  /** Of a table that is partitioned by month, as toYYYYMM says it; all of them when absent. */
  readonly month?: number;
  /**
   * Rows of which any holds. In constants, columns and deterministic functions alone: replicas carry it out each by itself and
   * must come to the same.
   */
  readonly conditions: readonly string[];
  /** And this. */
  readonly only?: string;
};

/**
 * Resolves when nothing of it is left on any replica that is there; one that comes back does it before anything else. As few
 * mutations as can be: each looks at every part of the table, also of months that it does not name.
 */
export async function deleteWhere(clickhouse: ClickHouseClient, rows: RowsToTake): Promise<void> {
  const { table, month, only } = rows;
  try {
    for (const some of inStatements(rows.conditions)) {
      const any = some.join(' or ');
      const statement = { table, month, condition: only === undefined ? any : `${only} and (${any})` };
      if (!(await isAnyLeft(clickhouse, statement))) continue;
      await carryOut(clickhouse, statement);
      if (await isAnyLeft(clickhouse, statement)) throw unavailable('the usage store (rows are being taken away)');
    }
  } catch (error) {
    throw toClickHouseFailure(`delete from ${table}`, error);
  }
}

/** A server takes statements of 256 KiB, and notes each mutation whole. */
const STATEMENT_LENGTH_MAX = 150_000;

function inStatements(conditions: readonly string[]): string[][] {
  const statements: string[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const condition of conditions) {
    if (length + condition.length > STATEMENT_LENGTH_MAX) {
      statements.push([]);
      length = 0;
    }
    statements.at(-1)!.push(condition);
    length += condition.length;
  }
  return statements;
}

type DeleteStatement = { readonly table: string; readonly month: number | undefined; readonly condition: string };

async function carryOut(clickhouse: ClickHouseClient, { table, month, condition }: DeleteStatement): Promise<void> {
  const part = month === undefined ? '' : `in partition ${month}`;
  try {
    await clickhouse.command({ query: `delete from ${table} ${part} where ${condition}` });
  } catch (error) {
    // It is done where replicas are, and waits for the others.
    if (!(error instanceof ClickHouseError && error.code === UNFINISHED)) throw error;
  }
}

const UNFINISHED = '341';

/** Reads until it finds one. */
async function isAnyLeft(clickhouse: ClickHouseClient, { table, month, condition }: DeleteStatement): Promise<boolean> {
  const part = month === undefined ? '' : `_partition_id = '${month}' and`;
  const query = `select toString(count()) as n from (select 1 from ${table} where ${part} (${condition}) limit 1)`;
  const answer = await clickhouse.query({ query, format: 'JSONEachRow' });
  return (await answer.json<{ n: string }>())[0]!.n !== '0';
}
