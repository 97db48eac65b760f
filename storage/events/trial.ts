/**
 * Tests whether ClickHouse accepts rows without storing them: inserts into a table with the columns and constraints of the target, whose
 * engine discards all rows.
 */

import { randomUUID } from 'node:crypto';
import { type ClickHouseClient, onCluster, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { isUnavailable } from '../foundation/failure.ts';
import { writeRows } from './rows.ts';
import type { RowTarget } from './tables.ts';

/** One search for rejected rows. It has its own tables, so that concurrent searches do not drop each other's tables. */
export class Trial {
  readonly #clickhouse: ClickHouseClient;
  readonly #suffix = `trial_${randomUUID().replaceAll('-', '')}`;
  readonly #tables = new Set<string>();

  constructor(clickhouse: ClickHouseClient) {
    this.#clickhouse = clickhouse;
  }

  /** Reason for which the rows are rejected; undefined if they are accepted. Transient errors, such as an unavailable store, are thrown. */
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
