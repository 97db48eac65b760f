/**
 * The scope columns of each table. A table that is not named here belongs to a tenant and an environment, so the tenant guard
 * covers a new table from its first day. test/storage/postgres/tenant-guard/tenant-guard.test.ts compares this list with the catalogue of
 * Postgres.
 */
export type ScopeColumn = 'tenant_id' | 'environment_id';

/** A column of the table, and the part of the scope that it holds. */
export type ScopeColumnOfTable = { readonly column: string; readonly scope_column: ScopeColumn };

const BOTH: readonly ScopeColumnOfTable[] = [
  { column: 'tenant_id', scope_column: 'tenant_id' },
  { column: 'environment_id', scope_column: 'environment_id' },
];
const TENANT: readonly ScopeColumnOfTable[] = [{ column: 'tenant_id', scope_column: 'tenant_id' }];

/** Tables whose rows belong to a tenant and to no environment. */
const TENANT_WIDE: Readonly<Record<string, readonly ScopeColumnOfTable[]>> = {
  tenants: [{ column: 'id', scope_column: 'tenant_id' }],
  environments: TENANT,
  tenant_settings: TENANT,
  users: TENANT,
  user_passwords: TENANT,
  sessions: TENANT,
  console_links: TENANT,
  // A key may be valid for all environments.
  secrets: TENANT,
};

/** Tables of the installation: none of their rows belongs to a tenant. */
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

/** Schemas that are not ours: the job queue, and Postgres itself. */
const OTHER_SCHEMAS: ReadonlySet<string> = new Set(['graphile_worker', 'pg_catalog', 'information_schema']);

/** Lists the scope columns of a table; empty if its rows belong to no tenant. */
export function listScopeColumns(table: {
  readonly schema?: string | undefined;
  readonly name: string;
}): readonly ScopeColumnOfTable[] {
  if (table.schema !== undefined && OTHER_SCHEMAS.has(table.schema)) return [];
  if (UNSCOPED_TABLES.has(table.name) || /^pg_/.test(table.name)) return [];
  return TENANT_WIDE[table.name] ?? BOTH;
}
