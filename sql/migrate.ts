/**
 * Brings both databases to the schema of this version. Files are `sql/postgres/NNNN-name.sql` and
 * `sql/clickhouse/NNNN-name.sql`, applied once, in the order of their names. A file that was applied is never edited.
 *
 * Postgres: all new files are one transaction; a failure leaves the schema as it was. Each is recorded with its checksum. The
 * tables of the job queue belong to graphile-worker and have their own schema.
 *
 * ClickHouse has no transactions: each statement is recorded with its checksum, and a run that failed continues with
 * the failed statement. Statements end with a semicolon. The same files serve one server and a replicated cluster by
 * three placeholders; everything else in braces ({shard}, {name:String}) is left alone:
 *
 *   {on_cluster}               nothing            or  ON CLUSTER 'name'
 *                              Follows the name of the table in CREATE, ALTER, DROP and the like.
 *   {engine:MergeTree}         MergeTree()        or  ReplicatedMergeTree()
 *   {engine:ReplacingMergeTree(version)}          or  ReplicatedReplacingMergeTree(version)
 *                              Path and replica are the server's default_replica_path and default_replica_name, so the
 *                              servers need the macros {shard} and {replica}.
 *   {deduplication_window}     the settings that keep an insert with a token from being applied twice, on either kind of
 *                              table, for the last 10 000 blocks; {deduplication_window:100} for another number.
 *                              Belongs into SETTINGS; every table that is inserted into needs it.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Knex } from 'knex';
import { type ClickHouseClient, toClickHouseFailure } from '../storage/clickhouse/clickhouse.ts';
import { quoteText } from '../storage/clickhouse/literals.ts';
import { splitStatements } from '../storage/clickhouse/tokens.ts';
import { migrateJobs } from '../storage/queue/jobs.ts';

interface MigrationOptions {
  /** Folder of the files; the folder of this version if absent. */
  folder?: string | undefined;
}

interface MigrateOptions {
  /** Folders of the files; those of this version if absent. */
  folders?: { postgres: string; clickhouse: string };
  cluster?: string | undefined;
}

interface ClickHouseMigrationOptions extends MigrationOptions {
  /** The cluster whose servers all get the tables; a single server if absent. */
  cluster?: string | undefined;
}

/** Key of an advisory lock: arbitrary, but equal in every process. */
const LOCK = 7_155_019;

/**
 * Migrates both databases, in one process at a time: ClickHouse has no lock, so the lock of Postgres covers both. Postgres is committed after
 * ClickHouse, so a failed file of either leaves Postgres as it was. A failed file of Postgres leaves ClickHouse as it was, too, and the
 * earlier version can start again.
 */
export async function migrate(
  { postgres, clickhouse }: { postgres: Knex; clickhouse: ClickHouseClient },
  { folders, cluster }: MigrateOptions = {},
): Promise<{ postgres: string[]; clickhouse: string[] }> {
  const [inPostgres, inClickHouse] = [{ folder: folders?.postgres }, { folder: folders?.clickhouse, cluster }];
  return locked(postgres, async (transaction) => {
    await refuseNewerPostgres(transaction, inPostgres);
    await refuseNewerClickHouse(clickhouse, inClickHouse);
    await migrateJobs(postgres);
    const applied = await applyTo(transaction, inPostgres);
    return { postgres: applied, clickhouse: await migrateClickHouse(clickhouse, inClickHouse) };
  });
}

/** Applies the new files and returns their names. */
export async function migratePostgres(database: Knex, options: MigrationOptions = {}): Promise<string[]> {
  return locked(database, async (transaction) => {
    await refuseNewerPostgres(transaction, options);
    await migrateJobs(database);
    return applyTo(transaction, options);
  });
}

/**
 * Runs the migration under an advisory lock. Knex has a lock of its own, but two concurrent first starts may both create its table, and one
 * of them fails.
 */
function locked<Result>(database: Knex, work: (transaction: Knex.Transaction) => Promise<Result>): Promise<Result> {
  return database.transaction(async (transaction) => {
    await transaction.raw('select pg_advisory_xact_lock(?)', [LOCK]);
    return work(transaction);
  });
}

async function applyTo(transaction: Knex.Transaction, { folder = findFolder('postgres') }: MigrationOptions) {
  const files = readSqlFiles(folder);
  const unknown = await checkApplied(transaction, files);
  const migrationSource: Knex.MigrationSource<SqlFile> = {
    getMigrations: async () => files,
    getMigrationName: (file) => file.name,
    getMigration: async ({ sql }) => ({
      // The jsonb operator `?` is escaped, because knex would treat it as a placeholder.
      up: async (knex: Knex) => void (await knex.raw(sql.replaceAll('?', '\\?'))),
      down: () => Promise.reject(new Error('migrations go forward only')),
    }),
  };
  const [, applied] = await transaction.migrate.latest({ migrationSource, tableName: POSTGRES_JOURNAL });
  await noteChecksums(transaction, unknown);
  return applied as string[];
}

/** Runs before any other step, so that nothing is changed. */
async function refuseNewerPostgres(
  transaction: Knex.Transaction,
  { folder = findFolder('postgres') }: MigrationOptions = {},
): Promise<void> {
  if (!(await transaction.schema.hasTable(POSTGRES_JOURNAL))) return;
  const applied = await transaction(POSTGRES_JOURNAL).orderBy('name').pluck('name');
  refuseNewer('Postgres', applied, readSqlFiles(folder));
}

async function refuseNewerClickHouse(
  client: ClickHouseClient,
  { folder = findFolder('clickhouse') }: MigrationOptions,
): Promise<void> {
  if (await hasJournal(client)) refuseNewer('ClickHouse', listApplied(await readJournal(client)), readSqlFiles(folder));
}

async function hasJournal(client: ClickHouseClient): Promise<boolean> {
  try {
    const answer = await client.query({ query: 'EXISTS TABLE schema_migrations', format: 'JSONEachRow' });
    const [row] = await answer.json<{ result: number }>();
    return row!.result === 1;
  } catch (error) {
    throw toClickHouseFailure('sql/clickhouse/schema_migrations', error);
  }
}

const POSTGRES_JOURNAL = 'schema_migrations';

/** Refuses a store that a newer version has migrated: its tables may have lost columns that this version writes. */
function refuseNewer(store: 'Postgres' | 'ClickHouse', applied: readonly string[], files: readonly SqlFile[]): void {
  const known = new Set(files.map(({ name }) => name));
  const unknown = applied.filter((name) => !known.has(name)).at(-1);
  if (unknown === undefined) return;
  throw new Error(
    `${store} has the schema of a newer version of Farthing: migration ${unknown} is not part of this one. ` +
      'Start that version again, or restore the backup from before the upgrade',
  );
}

/** Returns the files without a stored checksum: new ones, and those that an earlier release applied without recording one. */
async function checkApplied(transaction: Knex.Transaction, files: readonly SqlFile[]): Promise<SqlFile[]> {
  await transaction.raw(
    'create table if not exists schema_migration_checksums (name text primary key, checksum text not null)',
  );
  const { rows } = await transaction.raw('select name, checksum from schema_migration_checksums');
  const known = new Map<string, string>(rows.map(({ name, checksum }: Record<string, string>) => [name, checksum]));
  const changed = files.find(({ name, sql }) => known.has(name) && known.get(name) !== computeChecksum(sql));
  if (changed) throw new Error(`sql/postgres/${changed.name} was changed after it was applied; add a file instead`);
  return files.filter(({ name }) => !known.has(name));
}

async function noteChecksums(transaction: Knex.Transaction, files: readonly SqlFile[]): Promise<void> {
  if (files.length === 0) return;
  const rows = files.map(({ name, sql }) => ({ name, checksum: computeChecksum(sql) }));
  await transaction('schema_migration_checksums').insert(rows);
}

/** Applies the new statements and returns the names of their files. */
export async function migrateClickHouse(
  client: ClickHouseClient,
  { cluster, folder = findFolder('clickhouse') }: ClickHouseMigrationOptions = {},
): Promise<string[]> {
  const files = readSqlFiles(folder);
  await command(client, expandPlaceholders(JOURNAL, cluster));
  const known = await readJournal(client);
  refuseNewer('ClickHouse', listApplied(known), files);
  const applied = new Set<string>();
  for (const { name, sql: text } of files) {
    const statements = splitStatements(text);
    checkHistory({ name, statements, known });
    for (const [position, statement] of statements.entries()) {
      if (known.has(`${name}#${position}`)) continue;
      const sql = repeatable(expandPlaceholders(statement, cluster), cluster);
      await command(client, sql, `${name}, statement ${position + 1}`);
      const values = [{ name, position, checksum: computeChecksum(statement) }];
      await client.insert({ table: 'schema_migrations', values, format: 'JSONEachRow' });
      applied.add(name);
    }
  }
  return [...applied];
}

const JOURNAL = `CREATE TABLE IF NOT EXISTS schema_migrations {on_cluster}
(
  name       String,
  position   UInt32,
  checksum   String,
  applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC')
)
ENGINE = {engine:MergeTree}
ORDER BY (name, position)`;

async function readJournal(client: ClickHouseClient): Promise<Map<string, string>> {
  const query = 'SELECT name, position, checksum FROM schema_migrations';
  const rows = await (await client.query({ query, format: 'JSONEachRow' })).json<{
    name: string;
    position: number;
    checksum: string;
  }>();
  return new Map(rows.map(({ name, position, checksum }) => [`${name}#${position}`, checksum]));
}

function listApplied(known: ReadonlyMap<string, string>): string[] {
  return [...known.keys()].map((key) => key.slice(0, key.indexOf('#'))).sort();
}

/** Rejects an edited statement that was applied before: old and new installations would have different tables. */
function checkHistory({ name, statements, known }: { name: string; statements: string[]; known: Map<string, string> }) {
  const applied = [...known].filter(([key]) => key.startsWith(`${name}#`));
  for (const [key, checksum] of applied) {
    const position = Number(key.slice(name.length + 1));
    const statement = statements[position];
    if (statement !== undefined && computeChecksum(statement) === checksum) continue;
    throw new Error(
      `sql/clickhouse/${name}: statement ${position + 1} was changed after it was applied; add a file instead`,
    );
  }
}

function computeChecksum(statement: string): string {
  return createHash('sha256').update(statement).digest('hex');
}

/** Replaces the placeholders that the comment at the top of this file describes. */
export function expandPlaceholders(sql: string, cluster?: string): string {
  const replicated = cluster !== undefined;
  return sql
    .replaceAll('{on_cluster}', replicated ? `ON CLUSTER ${quoteText(cluster)}` : '')
    .replace(
      /\{engine:(\w+)(\([^{}]*\))?\}/g,
      (_, engine, args = '()') => `${replicated ? 'Replicated' : ''}${engine}${args}`,
    )
    .replace(/\{deduplication_window(?::(\d+))?\}/g, (_, window = '10000') => deduplication(window));
}

/**
 * Makes a statement repeatable: a run may end between a statement and its record, and the next run then repeats the statement. On a cluster
 * a missing table is not created again, because it would get another id and would not be a replica.
 */
function repeatable(sql: string, cluster?: string): string {
  const altered = sql
    .replace(/\bADD (COLUMN|INDEX) (?!IF )/gi, 'ADD $1 IF NOT EXISTS ')
    .replace(/\bDROP (COLUMN|INDEX) (?!IF )/gi, 'DROP $1 IF EXISTS ');
  return cluster === undefined ? altered.replace(/^(CREATE (?:TABLE|VIEW)) (?!IF )/gim, '$1 IF NOT EXISTS ') : altered;
}

/**
 * Settings for the deduplication of inserts. Both kinds of table accept the settings of the other kind. A replicated table also forgets
 * tokens after a week.
 */
function deduplication(window: string): string {
  return [
    `non_replicated_deduplication_window = ${window}`,
    `replicated_deduplication_window = ${window}`,
    'replicated_deduplication_window_seconds = 604800',
  ].join(', ');
}

async function command(client: ClickHouseClient, query: string, what = 'schema_migrations'): Promise<void> {
  try {
    // On a cluster the answer arrives when every server has executed the statement.
    await client.command({ query, clickhouse_settings: { distributed_ddl_task_timeout: '120' } });
  } catch (error) {
    throw toClickHouseFailure(`sql/clickhouse/${what}`, error);
  }
}

interface SqlFile {
  name: string;
  sql: string;
}

function findFolder(database: 'postgres' | 'clickhouse'): string {
  return fileURLToPath(new URL(`./${database}`, import.meta.url));
}

export function readSqlFiles(folder: string): SqlFile[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  for (const [at, name] of names.entries()) {
    if (!/^\d{4}-[a-z0-9-]+\.sql$/.test(name)) throw new Error(`${folder}: ${name} is not called NNNN-name.sql`);
    if (names[at + 1]?.startsWith(name.slice(0, 5)))
      throw new Error(`${folder}: two files have the number ${name.slice(0, 4)}`);
  }
  return names.map((name) => ({ name, sql: readFileSync(`${folder}/${name}`, 'utf8') }));
}

/** `npm run migrate`, for stores that are not embedded. */
async function migrateFromCommandLine(): Promise<void> {
  const { readConfig } = await import('../config.ts');
  const { connectClickHouse } = await import('../storage/clickhouse/clickhouse.ts');
  const { connectPostgres } = await import('../storage/postgres/pool/postgres.ts');
  const { DATABASE_URL, CLICKHOUSE_URL, CLICKHOUSE_CLUSTER } = readConfig();
  if (!DATABASE_URL || !CLICKHOUSE_URL) {
    throw new Error('migrate: set DATABASE_URL and CLICKHOUSE_URL; the embedded stores are migrated at their start');
  }
  const clickhouse = connectClickHouse(CLICKHOUSE_URL, { cluster: CLICKHOUSE_CLUSTER });
  const stores = { postgres: connectPostgres(DATABASE_URL), clickhouse };
  try {
    const applied = await migrate(stores, { cluster: CLICKHOUSE_CLUSTER });
    process.stdout.write(`postgres: ${applied.postgres.join(', ') || 'up to date'}\n`);
    process.stdout.write(`clickhouse: ${applied.clickhouse.join(', ') || 'up to date'}\n`);
  } finally {
    await Promise.all([stores.postgres.destroy(), stores.clickhouse.close()]);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  migrateFromCommandLine().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
