/**
 * Real stores for tests: one embedded Postgres and one ClickHouse engine per run of mocha, started at first use. Each
 * test that needs one gets its own migrated database in both. TEST_DATABASE_URL and TEST_CLICKHOUSE_URL name servers to
 * use instead.
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import { migrateClickHouse, migratePostgres } from '../../sql/migrate.ts';
import { type ClickHouseClient, connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { processStart } from '../../storage/embedded/process-start.ts';
import { type EmbeddedStack, startEmbedded } from '../../storage/embedded/stack.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { atEnd } from './at-end.ts';
import { isInMemory, storeDirectory } from './store-directory.ts';

export interface FreshDatabase {
  postgres: Knex;
  clickhouse: ClickHouseClient;
  postgres_url: string;
  clickhouse_url: string;
  /** Closes the connections and drops both databases. */
  close(): Promise<void>;
}

interface TestStores {
  postgres_url: string;
  clickhouse_url: string;
  /** A new, migrated database in both stores. */
  freshDatabase(): Promise<FreshDatabase>;
}

let running: Promise<{ stores: TestStores; stop: () => Promise<void> }> | undefined;

/** Returns the stores of this run; the first call starts them. */
export async function testStores(): Promise<TestStores> {
  if (!running) {
    running = start();
    atEnd.push(stopTestStores);
  }
  return (await running).stores;
}

/** Creates a database in the stores of this run. */
export async function freshDatabase(): Promise<FreshDatabase> {
  return (await testStores()).freshDatabase();
}

/** Stops the stores after the run. */
export async function stopTestStores(): Promise<void> {
  const stop = running;
  running = undefined;
  await (await stop)?.stop();
}

async function start() {
  const dir = storeDirectory();
  const lines: string[] = [];
  const embedded = await startEmbedded({
    dir,
    log: (part, line) => lines.push(`${part}: ${line}`),
    postgres_url: process.env.TEST_DATABASE_URL,
    clickhouse_url: process.env.TEST_CLICKHOUSE_URL,
    onDeath: (part, detail) => {
      process.stderr.write(`${part} died during the tests: ${detail}\n${lines.slice(-20).join('\n')}\n`);
    },
  });
  embedded.unref(); // The stores must not keep a run alive that has no root hook or was interrupted.
  const pids = embedded.pids();
  process.once('exit', () => endNow(pids, dir));
  const { stores, dropTemplates } = await prepare(
    embedded,
    process.env.TEST_DATABASE_URL ? 'wal_log' : copyStrategy(dir),
  );
  const stop = async () => {
    await dropTemplates();
    await embedded.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  return { stores, stop };
}

/** An exiting process cannot await anything, so this stops the stores and blocks until they have ended. */
function endNow(pids: number[], dir: string): void {
  const alive = () => pids.filter((pid) => processStart(pid) !== '');
  for (const pid of alive()) process.kill(pid, 'SIGINT');
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let waited_ms = 0; alive().length > 0 && waited_ms < 5_000; waited_ms += 20) Atomics.wait(clock, 0, 0, 20);
  rmSync(dir, { recursive: true, force: true });
}

/**
 * In memory, copying the files takes half the time of copying block by block through the WAL. On a disk, each of the
 * thousand files would be synced.
 */
function copyStrategy(dir: string): CopyStrategy {
  return isInMemory(dir) ? 'file_copy' : 'wal_log';
}

type CopyStrategy = 'file_copy' | 'wal_log';

/** Test databases are copies of a template that is migrated once in each store. */
async function prepare({ postgres_url, clickhouse_url }: EmbeddedStack, strategy: CopyStrategy) {
  const run = randomBytes(4).toString('hex');
  const template = `test_${run}_template`;
  const root = connectPostgres(postgres_url, { idle_timeout_ms: 500 });
  const clickhouse_root = connectClickHouse(clickhouse_url);
  await root.raw(`create database ${template}`);
  const first = connectPostgres(withDatabase(postgres_url, template), { pool_max: 1 });
  try {
    await migratePostgres(first);
  } finally {
    await first.destroy();
  }

  const tables = await templateOf(clickhouse_url, template);

  let count = 0;
  let copying: Promise<unknown> = Promise.resolve();
  // ClickHouse databases of finished tests, emptied for reuse: creating one takes three times the CPU of emptying it.
  const emptied: string[] = [];
  const fresh = async (): Promise<FreshDatabase> => {
    count += 1;
    const name = `test_${run}_${count}`;
    // Postgres copies a template only if no other session uses it, so each copy waits for the previous one.
    copying = copying.then(() => root.raw(`create database ${name} template ${template} strategy ${strategy}`));
    const clickhouse_name = emptied.pop() ?? name;
    const isNew = clickhouse_name === name;
    await Promise.all([copying, isNew && copyClickHouse(clickhouse_root, tables, name)]);
    const urls = {
      postgres_url: withDatabase(postgres_url, name),
      clickhouse_url: withDatabase(clickhouse_url, clickhouse_name),
    };
    const postgres = connectPostgres(urls.postgres_url, { idle_timeout_ms: 5_000 });
    const clickhouse = connectClickHouse(urls.clickhouse_url);
    const close = async () => {
      await Promise.all([postgres.destroy(), clickhouse.close()]);
      await Promise.all([
        root.raw(`drop database if exists ${name} with (force)`),
        emptyClickHouse(clickhouse_root, tables, clickhouse_name).then(
          (isEmptied) => void (isEmptied && emptied.push(clickhouse_name)),
        ),
      ]);
    };
    return { postgres, clickhouse, ...urls, close };
  };
  const dropTemplates = async () => {
    await root.raw(`drop database if exists ${template} with (force)`);
    for (const name of [template, ...emptied.splice(0)]) await dropClickHouse(clickhouse_root, name);
    await Promise.all([root.destroy(), clickhouse_root.close()]);
  };
  return { stores: { postgres_url, clickhouse_url, freshDatabase: fresh }, dropTemplates };
}

type Template = {
  readonly name: string;
  readonly tables: readonly { readonly statement: string; readonly is_view: boolean }[];
};

/**
 * Reads the CREATE statements of the template, because ClickHouse cannot copy databases. Running them again takes a tenth of the
 * migrations.
 */
async function templateOf(clickhouse_url: string, name: string): Promise<Template> {
  const root = connectClickHouse(clickhouse_url);
  await root.command({ query: `CREATE DATABASE ${name}` });
  await root.close();
  const clickhouse = connectClickHouse(withDatabase(clickhouse_url, name));
  try {
    await migrateClickHouse(clickhouse);
    const query = `SELECT create_table_query AS statement, engine = 'View' AS is_view FROM system.tables WHERE database = '${name}'`;
    const rows = await (await clickhouse.query({ query, format: 'JSONEachRow' })).json<{
      statement: string;
      is_view: 0 | 1;
    }>();
    return { name, tables: rows.map(({ statement, is_view }) => ({ statement, is_view: is_view === 1 })) };
  } finally {
    await clickhouse.close();
  }
}

const JOURNAL = 'schema_migrations';

/** Copies the template, including the journal of migrations, so that a migration finds nothing to do. */
async function copyClickHouse(
  root: ClickHouseClient,
  { name: template, tables }: Template,
  name: string,
): Promise<void> {
  await root.command({ query: `CREATE DATABASE ${name}` });
  const create = (some: Template['tables']) =>
    Promise.all(some.map(({ statement }) => root.command({ query: statement.replaceAll(`${template}.`, `${name}.`) })));
  await create(tables.filter(({ is_view }) => !is_view));
  await create(tables.filter(({ is_view }) => is_view));
  await root.command({ query: `INSERT INTO ${name}.${JOURNAL} SELECT * FROM ${template}.${JOURNAL}` });
}

/**
 * Empties a database for reuse and returns true. It drops the database and returns false if its tables or its journal differ from the
 * template, or if a statement may still write to it.
 */
async function emptyClickHouse(root: ClickHouseClient, template: Template, name: string): Promise<boolean> {
  const filled = (await isAsMade(root, template, name)) && (await filledAndAtRest(root, template, name));
  if (filled) await Promise.all(filled.map((table) => root.command({ query: `TRUNCATE TABLE ${name}.${table} SYNC` })));
  else await dropClickHouse(root, name);
  return filled !== false;
}

async function isAsMade(root: ClickHouseClient, { name: template, tables }: Template, name: string): Promise<boolean> {
  const query = `SELECT create_table_query AS statement FROM system.tables WHERE database = '${name}'`;
  const now = await (await root.query({ query, format: 'JSONEachRow' })).json<{ statement: string }>();
  const statements = now.map(({ statement }) => statement.replaceAll(`${name}.`, `${template}.`)).sort();
  return isDeepStrictEqual(statements, tables.map(({ statement }) => statement).sort());
}

/** Lists the tables with rows. Returns false if a statement may still write to the database. */
async function filledAndAtRest(root: ClickHouseClient, { name: template }: Template, name: string) {
  const journal = (database: string) =>
    `(SELECT arraySort(groupArray((name, position, checksum))) FROM ${database}.${JOURNAL})`;
  const query = `SELECT
      (SELECT groupUniqArray(table) FROM system.parts WHERE database = '${name}' AND table != '${JOURNAL}') AS filled,
      (SELECT count() FROM system.processes WHERE current_database = '${name}') = 0
        AND (SELECT count() FROM system.mutations WHERE database = '${name}' AND is_done = 0) = 0
        AND ${journal(name)} = ${journal(template)} AS is_at_rest`;
  const [now] = await (await root.query({ query, format: 'JSONEachRow' })).json<{
    filled: string[];
    is_at_rest: 0 | 1;
  }>();
  return now!.is_at_rest === 1 && now!.filled;
}

async function dropClickHouse(root: ClickHouseClient, name: string): Promise<void> {
  await root.command({ query: `DROP DATABASE IF EXISTS ${name} SYNC` });
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}
