/** Every failure here is one that a store or its driver really gave, and none is made up. */
import { ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { expect } from 'chai';
import { alreadyExists, FarthingError, invalid, notFound } from '../../../core/foundation/error.ts';
import { toClickHouseFailure } from '../../../storage/clickhouse/clickhouse.ts';
import { classifyFailure, isUnavailable } from '../../../storage/foundation/failure.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { connectPostgres } from '../../../storage/postgres/pool/postgres.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

const NOBODY_LISTENS = '127.0.0.1:9';

describe('failureOf', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
    await database.postgres.raw('create table parents (id int primary key)');
    await database.postgres.raw('create table children (id int primary key, parent int references parents)');
    await database.postgres.raw('insert into children values (1, null)');
  });
  after(() => database.close());

  const said = async (work: PromiseLike<unknown>) => {
    const failed = await Promise.resolve(work).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failed, 'it was to fail').to.be.instanceOf(Error);
    return failed;
  };
  const byPostgres = (sql: string) => said(database.postgres.raw(sql));

  for (const [what, sql, failure] of [
    ['a row that is there already', 'insert into children values (1, null)', 'conflict'],
    ['a reference to nothing', 'insert into children values (2, 7)', 'refused'],
    ['a number beyond its column', 'insert into children values (99999999999999, null)', 'refused'],
    ['a text that is no number', `select 'x'::int`, 'refused'],
    ['a table that is not there', 'select * from nothing', 'ours'],
    ['a statement that is none', 'selec 1', 'ours'],
    ['a statement that took too long', 'set local statement_timeout = 20; select pg_sleep(5)', 'away'],
  ] as const)
    it(`Postgres: ${what} is ${failure}`, async () => expect(classifyFailure(await byPostgres(sql))).to.equal(failure));

  it('Postgres: a session that is ended is away', async () => {
    // In a pool of its own: the next question of this one would meet the dead connection.
    const alone = connectPostgres(database.postgres_url, { pool_max: 1 });
    expect(classifyFailure(await said(alone.raw('select pg_terminate_backend(pg_backend_pid())')))).to.equal('away');
    await alone.destroy();
  });

  it('Postgres: a transaction whose session was ended is away, at the first statement after it and at the next', async () => {
    const alone = connectPostgres(database.postgres_url, { pool_max: 1 });
    const transaction = await alone.transaction();
    const { rows } = await transaction.raw('select pg_backend_pid() as pid');
    await database.postgres.raw('select pg_terminate_backend(?)', [rows[0].pid]);
    for (const which of ['first', 'next'])
      expect(classifyFailure(await said(transaction.raw('select 1'))), which).to.equal('away');
    await transaction.rollback().catch(() => {}); // There is nothing to roll back any more.
    await alone.destroy();
  });

  it('a model says the same through Objection', async () => {
    const nothing = CustomerModel.in({ tenant_id: 'a', environment_id: 'b' }, database.postgres);
    expect(classifyFailure(await said(nothing.whereRaw(`'x'::int = 1`)))).to.equal('refused');
  });

  it('Postgres that is not reached is away, and so is a pool without a free connection', async () => {
    const nobody = connectPostgres(`postgres://x@${NOBODY_LISTENS}/x`, { acquire_timeout_ms: 300 });
    expect(isUnavailable(await said(nobody.raw('select 1')))).to.equal(true);
    await nobody.destroy();
    const narrow = connectPostgres(database.postgres_url, { pool_max: 1, acquire_timeout_ms: 300 });
    // On a busy machine the first connection may take longer than that.
    const held = await until('the only connection', () => narrow.transaction().catch(() => undefined));
    expect(isUnavailable(await said(narrow.raw('select 1')))).to.equal(true);
    await held.rollback();
    await narrow.destroy();
  });

  it('ClickHouse that is not reached is away; a statement that is none is ours', async () => {
    const nobody = createClient({ url: `http://${NOBODY_LISTENS}`, log: { level: ClickHouseLogLevel.OFF } });
    const unreached = await said(nobody.query({ query: 'SELECT 1' }));
    expect(classifyFailure(unreached)).to.equal('away');
    expect(toClickHouseFailure('a question', unreached)).to.include({ code: 'service_unavailable' });
    await nobody.close();
    const wrong = await said(database.clickhouse.query({ query: 'SELEC 1' }));
    expect(classifyFailure(wrong)).to.equal('ours');
    expect(toClickHouseFailure('a question', wrong)).to.include({ code: 'database_error' });
  });

  it('ClickHouse that is too busy is away', async () => {
    const query = 'SELECT sum(cityHash64(number)) FROM numbers(100000000000)';
    const settings = { max_execution_time: 1 };
    expect(classifyFailure(await said(database.clickhouse.query({ query, clickhouse_settings: settings })))).to.equal(
      'away',
    );
  });

  for (const [error, failure] of [
    [new FarthingError('service_unavailable', 'x'), 'away'],
    [new FarthingError('database_error', 'x'), 'ours'],
    [alreadyExists('x'), 'conflict'],
    [invalid('field', 'x'), undefined],
    [notFound('meter', 'x'), undefined],
    [new TypeError('x is not a function'), undefined],
    [new Error('the connection was terminated by a fault of ours'), undefined],
    [undefined, undefined],
  ] as const)
    it(`${String(error)} is ${failure ?? 'no failure of a store'}`, () =>
      expect(classifyFailure(error)).to.equal(failure));
});
