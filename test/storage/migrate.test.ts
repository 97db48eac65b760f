import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { explain } from '../../process/explain.ts';
import { expandPlaceholders, migrate, migrateClickHouse, migratePostgres, readSqlFiles } from '../../sql/migrate.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { type FreshDatabase, testStores } from '../support/stores.ts';

describe('migrate', () => {
  let database: FreshDatabase;
  let folder: string;

  beforeEach(async () => {
    database = await (await testStores()).freshDatabase();
    folder = mkdtempSync(join(tmpdir(), 'farthing-sql-'));
  });
  afterEach(async () => {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const file = (name: string, sql: string) => writeFileSync(join(folder, name), sql);

  it('gives each who asks databases of their own', async () => {
    const { freshDatabase } = await testStores();
    const start = performance.now();
    const fresh = await freshDatabase();
    console.log(`      a fresh database: ${(performance.now() - start).toFixed(0)} ms`);
    await fresh.postgres.raw('create table only_here (a int)');
    await fresh.clickhouse.command({ query: 'CREATE TABLE only_here (a UInt8) ENGINE = MergeTree ORDER BY a' });
    expect(await database.postgres.schema.hasTable('only_here')).to.equal(false);
    const answer = await database.clickhouse.query({ query: 'EXISTS TABLE only_here', format: 'JSONEachRow' });
    expect(await answer.json()).to.deep.equal([{ result: 0 }]);
    await fresh.close();
  });

  it('applies nothing the second time', async () => {
    expect(await migrate(database)).to.deep.equal({ postgres: [], clickhouse: [] });
  });

  it('lets two first starts race: the files are applied once', async () => {
    file('0001-race.sql', 'create table race (id text primary key);');
    await database.postgres.raw('drop table schema_migrations, schema_migrations_lock, schema_migration_checksums');
    const other = connectPostgres(database.postgres_url, { idle_timeout_ms: 500 });
    const both = await Promise.allSettled([
      migratePostgres(database.postgres, { folder }),
      migratePostgres(other, { folder }),
    ]);
    await other.destroy();
    expect(
      both.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value : [outcome.reason])),
    ).to.deep.equal(['0001-race.sql']);
  });

  it('keeps question marks, several statements and a failed file out of Postgres', async () => {
    await database.postgres.raw('drop table schema_migrations, schema_migrations_lock, schema_migration_checksums');
    file(
      '0001-a.sql',
      `create table a (j jsonb, has_x boolean generated always as (j ? 'x') stored); insert into a values ('{"x":1}');`,
    );
    await migratePostgres(database.postgres, { folder });
    expect(await database.postgres('a').select('has_x')).to.deep.equal([{ has_x: true }]);

    file('0002-b.sql', 'create table b (id text);');
    file('0003-c.sql', 'create table c (id text); select nonsense;');
    const failure = await migratePostgres(database.postgres, { folder }).catch((error: Error) => error);
    expect(String(failure)).to.contain('nonsense');
    expect(await database.postgres.schema.hasTable('b')).to.equal(false);
  });

  it('refuses a file of Postgres that was edited after it was applied, and changes nothing', async () => {
    await database.postgres.raw('drop table schema_migrations, schema_migrations_lock, schema_migration_checksums');
    file('0001-a.sql', 'create table a (id text);');
    await migratePostgres(database.postgres, { folder });
    file('0001-a.sql', 'create table a (id text, name text);');
    file('0002-b.sql', 'create table b (id text);');
    const failure = await migratePostgres(database.postgres, { folder }).catch((error: Error) => error);
    expect(String(failure)).to.contain('sql/postgres/0001-a.sql was changed after it was applied');
    expect(await database.postgres.schema.hasTable('b')).to.equal(false);
  });

  it('refuses stores that a newer version has migrated, in one line, and changes nothing', async () => {
    const { postgres, clickhouse } = database;
    const line = async () => explain(await migrate(database).catch((error: Error) => error));
    const newer = (store: string) =>
      `${store} has the schema of a newer version of Farthing: migration 9999-later.sql is not part of this one. ` +
      'Start that version again, or restore the backup from before the upgrade';

    const values = [{ name: '9999-later.sql', position: 0, checksum: 'x' }];
    await clickhouse.insert({ table: 'schema_migrations', values, format: 'JSONEachRow' });
    expect(await line()).to.equal(newer('ClickHouse'));
    await postgres('schema_migrations').insert({ name: '9999-later.sql', batch: 2, migration_time: new Date() });
    await postgres('schema_migrations').where({ name: '0001-tenants.sql' }).delete();
    expect(await line()).to.equal(newer('Postgres'));
    expect(await postgres('schema_migrations').where({ name: '0001-tenants.sql' })).to.deep.equal([]);
  });

  it('leaves stores that the earlier version still accepts if a file of Postgres fails, and continues with the mended file', async () => {
    const folders = { postgres: join(folder, 'postgres'), clickhouse: join(folder, 'clickhouse') };
    cpSync(join(import.meta.dirname, '../../sql'), folder, { recursive: true });
    file('clickhouse/9999-later.sql', 'CREATE TABLE later (a String) ENGINE = {engine:MergeTree} ORDER BY a;');
    file('postgres/9999-later.sql', 'select nonsense;');
    const failure = await migrate(database, { folders }).catch((error: Error) => error);
    expect(String(failure)).to.contain('nonsense');
    expect(await migrate(database)).to.deep.equal({ postgres: [], clickhouse: [] });

    file('postgres/9999-later.sql', 'create table later (id text);');
    file('clickhouse/9999-later.sql', 'CREATE TABLE later AS nope;');
    const half = await migrate(database, { folders }).catch((error: Error) => error);
    expect(String(half)).to.contain('nope');
    expect(await database.postgres.schema.hasTable('later')).to.equal(false);
    await database.clickhouse.command({ query: 'CREATE TABLE nope (b String) ENGINE = MergeTree ORDER BY b' });
    const applied = ['9999-later.sql'];
    expect(await migrate(database, { folders })).to.deep.equal({ postgres: applied, clickhouse: applied });
  });

  it('continues if only ClickHouse was migrated, because Postgres was lost before its commit', async () => {
    const folders = { postgres: join(folder, 'postgres'), clickhouse: join(folder, 'clickhouse') };
    cpSync(join(import.meta.dirname, '../../sql'), folder, { recursive: true });
    file('clickhouse/9999-later.sql', 'CREATE TABLE later (a String) ENGINE = {engine:MergeTree} ORDER BY a;');
    file('postgres/9999-later.sql', 'create table later (id text);');
    await migrateClickHouse(database.clickhouse, { folder: folders.clickhouse });
    expect(await migrate(database, { folders })).to.deep.equal({ postgres: ['9999-later.sql'], clickhouse: [] });
  });

  it('goes on with the statement of ClickHouse that failed', async () => {
    const { clickhouse } = database;
    await clickhouse.command({ query: 'TRUNCATE TABLE schema_migrations' });
    file(
      '0001-x.sql',
      "-- a; comment;\nCREATE TABLE x (a String DEFAULT ';\n') ENGINE = {engine:MergeTree} ORDER BY a;\nCREATE TABLE y AS nope;\n",
    );
    const failure = await migrateClickHouse(clickhouse, { folder }).catch((error: Error) => error);
    expect(String(failure)).to.contain('0001-x.sql, statement 2').and.to.contain('nope');

    await clickhouse.command({ query: 'CREATE TABLE nope (b String) ENGINE = MergeTree ORDER BY b' });
    expect(await migrateClickHouse(clickhouse, { folder })).to.deep.equal(['0001-x.sql']);
    expect(await migrateClickHouse(clickhouse, { folder })).to.deep.equal([]);
  });

  it('goes on where it was ended between a statement and its record', async () => {
    const { clickhouse } = database;
    const columns = async () => {
      const query = `select table, name, type from system.columns where database = currentDatabase() order by table, name`;
      return (await clickhouse.query({ query, format: 'JSONEachRow' })).json();
    };
    const before = await columns();
    await clickhouse.command({ query: 'TRUNCATE TABLE schema_migrations' });
    const names = readSqlFiles(join(import.meta.dirname, '../../sql/clickhouse')).map(({ name }) => name);
    expect(await migrateClickHouse(clickhouse)).to.deep.equal(names);
    expect(await columns()).to.deep.equal(before);
  });

  it('refuses a statement that was changed after it was applied', async () => {
    await database.clickhouse.command({ query: 'TRUNCATE TABLE schema_migrations' });
    file('0001-x.sql', 'CREATE TABLE x (a String) ENGINE = MergeTree ORDER BY a;');
    await migrateClickHouse(database.clickhouse, { folder });
    file('0001-x.sql', 'CREATE TABLE x (a Int32) ENGINE = MergeTree ORDER BY a;');
    const failure = await migrateClickHouse(database.clickhouse, { folder }).catch((error: Error) => error);
    expect(String(failure)).to.contain('statement 1 was changed after it was applied');
  });

  it('refuses files without a number or with the same one', () => {
    file('first.sql', '');
    expect(() => readSqlFiles(folder)).to.throw('first.sql is not called NNNN-name.sql');
    rmSync(join(folder, 'first.sql'));
    file('0001-a.sql', '');
    file('0001-b.sql', '');
    expect(() => readSqlFiles(folder)).to.throw('two files have the number 0001');
  });

  it('writes the same table for one server and for a cluster', () => {
    const sql =
      'CREATE TABLE t {on_cluster} (a {x:String}) ENGINE = {engine:ReplacingMergeTree(v, d)} SETTINGS {deduplication_window:7}';
    const windows =
      'non_replicated_deduplication_window = 7, replicated_deduplication_window = 7, replicated_deduplication_window_seconds = 604800';
    expect(expandPlaceholders(sql)).to.equal(
      `CREATE TABLE t  (a {x:String}) ENGINE = ReplacingMergeTree(v, d) SETTINGS ${windows}`,
    );
    expect(expandPlaceholders(sql, 'main')).to.equal(
      `CREATE TABLE t ON CLUSTER 'main' (a {x:String}) ENGINE = ReplicatedReplacingMergeTree(v, d) SETTINGS ${windows}`,
    );
    expect(expandPlaceholders('{engine:MergeTree}')).to.equal('MergeTree()');
  });
});
