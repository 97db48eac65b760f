/**
 * Tries whether ClickHouse would take rows, without keeping them: into a table of the same columns and constraints whose
 * engine forgets everything.
 */
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';
import { writeRows } from './rows.ts';
import type { RowTarget } from './tables.ts';

const FAR = 9_999_999_999;

/** Why the rows are refused; nothing when they would be taken. What may pass, like a store that is away, is thrown. */
export async function refusalOf<Row>(
  clickhouse: ClickHouseClient,
  target: RowTarget<Row>,
  rows: readonly Row[],
): Promise<string | undefined> {
  const table = `${target.table}_trial`;
  try {
    await clickhouse.command({ query: `create table if not exists ${table} as ${target.table} engine = Null` });
  } catch (error) {
    throw clickhouseFailure(`trial of ${target.table}`, error);
  }
  try {
    await writeRows(clickhouse, { ...target, table }, { rows, fence: { token: 'trial', deadline_s: FAR } });
    return undefined;
  } catch (error) {
    if ((error as { code?: string }).code === 'service_unavailable') throw error;
    return error instanceof Error ? error.message : String(error);
  }
}

export async function endTrials(clickhouse: ClickHouseClient, targets: readonly { table: string }[]): Promise<void> {
  for (const { table } of targets) await clickhouse.command({ query: `drop table if exists ${table}_trial` });
}
