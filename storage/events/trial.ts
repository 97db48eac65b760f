/**
 * Tries whether ClickHouse would take rows, without keeping them: into a table of the same columns and constraints whose
 * engine forgets everything.
 */

import { randomUUID } from 'node:crypto';
import { type ClickHouseClient, onCluster, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { isUnavailable } from '../failure.ts';
import { writeRows } from './rows.ts';
import type { RowTarget } from './tables.ts';

/** One search: its tables are its own, so that nobody takes away those of another. */
export class Trial {
  readonly #clickhouse: ClickHouseClient;
  readonly #suffix = `trial_${randomUUID().replaceAll('-', '')}`;
  readonly #tables = new Set<string>();

  constructor(clickhouse: ClickHouseClient) {
    this.#clickhouse = clickhouse;
  }

  /** Why the rows are refused; nothing when they would be taken. What may pass, like a store that is away, is thrown. */
  async findRejection<Row>(target: RowTarget<Row>, rows: readonly Row[]): Promise<string | undefined> {
    const table = `${target.table}_${this.#suffix}`;
    this.#tables.add(table);
    try {
      await this.#clickhouse.command({
        query: `create table if not exists ${table} ${onCluster(this.#clickhouse)} as ${target.table} engine = Null`,
      });
    } catch (error) {
      throw toClickHouseFailure(`trial of ${target.table}`, error);
    }
    try {
      await writeRows(this.#clickhouse, { ...target, table }, { rows, attempt: { writer: 'trial', attempt: 0n } });
      return undefined;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      return error instanceof Error ? error.message : String(error);
    }
  }

  async end(): Promise<void> {
    for (const table of this.#tables)
      await this.#clickhouse.command({ query: `drop table if exists ${table} ${onCluster(this.#clickhouse)}` });
  }
}
