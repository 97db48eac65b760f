/** Deletes rows: all delete statements of the product are built here. */
import { unavailable } from '../../core/foundation/error.ts';
import { type ClickHouseClient, ClickHouseError, toClickHouseFailure } from './clickhouse.ts';

type RowsToTake = {
  readonly table: string;
  /** Restricts a table that is partitioned by month (toYYYYMM); all months if absent. */
  readonly month?: number;
  /**
   * Rows that match any of these conditions are deleted. Only constants, columns and deterministic functions are
   * allowed: each replica executes the conditions itself, and the results must be equal.
   */
  readonly conditions: readonly string[];
  /** An additional condition for all deleted rows. */
  readonly only?: string;
};

/**
 * Resolves when the rows are gone on every available replica; a returning replica deletes them first. Uses as few mutations as
 * possible: each reads every part of the table, even of months that it does not name.
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

/** A server accepts statements of up to 256 KiB, and stores each mutation whole. */
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
    // This error means that the available replicas have executed the mutation, and that it remains pending for the others.
    if (!(error instanceof ClickHouseError && error.code === UNFINISHED)) throw error;
  }
}

const UNFINISHED = '341';

async function isAnyLeft(clickhouse: ClickHouseClient, { table, month, condition }: DeleteStatement): Promise<boolean> {
  const part = month === undefined ? '' : `_partition_id = '${month}' and`;
  const query = `select toString(count()) as n from (select 1 from ${table} where ${part} (${condition}) limit 1)`;
  const answer = await clickhouse.query({ query, format: 'JSONEachRow' });
  return (await answer.json<{ n: string }>())[0]!.n !== '0';
}
