/** The open connections that every entrance hands to actions and models. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { Knex } from 'knex';
import type { EventLog } from './log/log.ts';
import type { UsageCache } from './usage/usage-cache.ts';

export type Stores = {
  readonly postgres: Knex;
  readonly clickhouse: ClickHouseClient;
  readonly log: EventLog;
  /** Where the pipeline runs in the same process. */
  readonly usage_memory?: UsageCache | undefined;
};

/** A pool or an open transaction: whatever a query may run on. */
export type Database = Knex;
export type Transaction = Knex.Transaction;
