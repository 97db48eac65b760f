/**
 * By which columns a row of a table belongs to somebody. A table that is not named here belongs to a tenant and an
 * environment: a new one stands behind the wall from its first day. test/storage/postgres/tenant-guard.test.ts holds this list against
 * the catalogue of Postgres.
 */
export type ScopeColumn = 'tenant_id' | 'environment_id';

/** A column of the table, and which part of the scope it holds. */
export type ScopeColumnOfTable = { readonly column: string; readonly scope_column: ScopeColumn };

const BOTH: readonly ScopeColumnOfTable[] = [
  { column: 'tenant_id', scope_column: 'tenant_id' },
  { column: 'environment_id', scope_column: 'environment_id' },
];
const TENANT: readonly ScopeColumnOfTable[] = [{ column: 'tenant_id', scope_column: 'tenant_id' }];

/** Above the environments. */
const TENANT_WIDE: Readonly<Record<string, readonly ScopeColumnOfTable[]>> = {
  tenants: [{ column: 'id', scope_column: 'tenant_id' }],
  environments: TENANT,
  tenant_settings: TENANT,
  users: TENANT,
  user_passwords: TENANT,
  // A key may be for all environments.
  secrets: TENANT,
};

/** What the installation keeps for itself: no row of these belongs to a tenant. */
export const UNSCOPED_TABLES: ReadonlySet<string> = new Set([
  'installation',
  'job_ticks',
  'job_turns',
  'job_workers',
  'log_consumers',
  'log_layout',
  'log_partitions',
  'log_segments',
  'meter_barriers',
  'poison_events',
  'record_changes',
  'record_changes_kept',
  'running_audits',
  'schema_migration_checksums',
  'schema_migrations',
  'schema_migrations_lock',
  'slice_ledger',
  'slices',
  'told_slices',
  'told_slices_wanted',
]);

/** Schemas whose tables are another's affair: the job queue, and Postgres itself. */
const OTHER_SCHEMAS: ReadonlySet<string> = new Set(['graphile_worker', 'pg_catalog', 'information_schema']);

/** Empty where a row belongs to nobody. */
export function listScopeColumns(table: {
  readonly schema?: string | undefined;
  readonly name: string;
}): readonly ScopeColumnOfTable[] {
  if (table.schema !== undefined && OTHER_SCHEMAS.has(table.schema)) return [];
  if (UNSCOPED_TABLES.has(table.name) || /^pg_/.test(table.name)) return [];
  return TENANT_WIDE[table.name] ?? BOTH;
}
