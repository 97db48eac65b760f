/** The open connections that every entrance passes to actions and models. */
import type { ClickHouseClient } from '@clickhouse/client';
import type { Knex } from 'knex';
import type { PlannedCorrection } from '../../core/metering/planned-correction.ts';
import type { EventLog } from '../log/log.ts';
import type { UsageCache } from '../usage/usage-cache.ts';

/** Settings for calls to providers on behalf of tenants. */
export type ProviderCallSettings = {
  readonly SECRETS_KEYS: readonly string[];
  /** Addresses that replace the public ones of providers: `name=http(s)://…`. */
  readonly PROVIDER_ADDRESSES: readonly string[];
};

export type Stores = {
  readonly postgres: Knex;
  readonly clickhouse: ClickHouseClient;
  readonly log: EventLog;
  /** Usage cache, if this process runs the pipeline or receives its slice notifications. */
  readonly usage_cache?: UsageCache | undefined;
  /** Present only in a preview of a correction: usage is read as if it had taken effect. */
  readonly planned_correction?: PlannedCorrection | undefined;
  /** Absent in a process that calls no provider. */
  readonly config?: ProviderCallSettings | undefined;
};

export type Postgres = Pick<Stores, 'postgres'>;

/** A pool or an open transaction: anything that can run a query. */
export type Database = Knex;
export type Transaction = Knex.Transaction;
