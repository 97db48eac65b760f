/** Complete statements and transactions of the Postgres client, which Knex neither builds nor opens. */
import { expect } from 'chai';
import type { Database, Transaction } from '../../../../storage/foundation/stores.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { sendStatement } from '../../../../storage/postgres/pool/statement-client.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';

describe('the client of Postgres', () => {
  let database: FreshDatabase;
  let postgres: Database;
  before(async () => {
    database = await freshDatabase();
    // One connection: a transaction that left it open or did not return it would fail the next test.
    postgres = connectPostgres(database.postgres_url, { pool_max: 1, acquire_timeout_ms: 500 });
  });
  after(async () => {
    await postgres.destroy();
    await database.close();
  });
  beforeEach(() => postgres.raw('drop table if exists things; create table things (id int primary key)'));

  const add = (id: number, on: Database) => on.raw('insert into things (id) values (?)', [id]);
  const list = async (on: Database = postgres) => on('things').orderBy('id').pluck('id');
  const failure = (work: Promise<unknown>): Promise<Error | undefined> =>
    work.then(
      () => undefined,
      (error: Error) => error,
    );

  it('passes values of each kind as parameters, and a prepared statement again', async () => {
    const at = new Date('2031-01-01T00:00:00Z');
    const values = ['a', 1, null, ['x', 'y'], [null, 'z'], Buffer.from('$1'), at];
    const text = 'select $1::text a, $2::int b, $3::text c, $4::text[] d, $5::text[] e, $6::bytea f, $7::timestamptz g';
    for (const is_prepared of [false, true, true]) {
      const { rows } = await sendStatement(postgres, { text, values, is_prepared });
      expect(Object.values(rows[0]!)).to.deep.equal([...values.slice(0, 6), '2031-01-01T00:00:00Z']);
    }
  });

  it('names the statement in its error, and reports it as sent', async () => {
    const texts: string[] = [];
    const note = ({ sql }: { sql: string }) => void texts.push(sql);
    postgres.on('query', note);
    const error = await failure(
      postgres.transaction((transaction) => sendStatement(transaction, { text: 'select 1 / $1::int', values: [0] })),
    );
    postgres.removeListener('query', note);
    expect(error?.message).to.equal('select 1 / $1::int - division by zero');
    expect(error).to.have.property('code', '22012');
    expect(texts).to.deep.equal(['BEGIN;', 'select 1 / $1::int', 'ROLLBACK']);
  });

  it('commits a transaction, or takes it back with the error of its work', async () => {
    const result = await postgres.transaction(async (transaction) => {
      expect(transaction.isTransaction).to.equal(true);
      await add(1, transaction);
      await transaction('things').insert({ id: 2 });
      return list(transaction);
    });
    expect(result).to.deep.equal([1, 2]);
    const stop = new Error('stop');
    const stopped = postgres.transaction(async (transaction) => {
      await add(3, transaction);
      throw stop;
    });
    expect(await failure(stopped)).to.equal(stop);
    const refused = postgres.transaction(async (transaction) => void (await add(1, transaction)));
    expect(await failure(refused)).to.have.property('code', '23505');
    expect(await list()).to.deep.equal([1, 2]);
  });

  it('refuses statements of a transaction that has ended', async () => {
    let ended: Transaction | undefined;
    await postgres.transaction(async (transaction) => {
      ended = transaction;
    });
    const late = [add(1, ended!), sendStatement(ended!, { text: 'select 1', values: [] })];
    for (const one of late) expect((await failure(one as Promise<unknown>))?.message).to.match(/transaction has ended/);
    expect(await list()).to.be.empty;
  });

  it('ends no other transaction when one is ended again', async () => {
    const first = await postgres.transaction();
    await add(1, first);
    await first.commit();
    await postgres.transaction(async (second) => {
      await add(2, second);
      await first.rollback();
      expect((await failure(first.commit() as unknown as Promise<unknown>))?.message).to.match(/has ended/);
      await add(3, second);
    });
    expect(await list()).to.deep.equal([1, 2, 3]);
  });

  it('fails if nothing was committed, because a failed statement was ignored', async () => {
    const ignoring = postgres.transaction(async (transaction) => {
      await add(1, transaction);
      await add(1, transaction).catch(() => undefined);
    });
    expect((await failure(ignoring))?.message).to.match(/nothing was committed/);
    expect(await list()).to.be.empty;
  });

  it('lends no connection again whose ROLLBACK has failed', async () => {
    const connection = await postgres.client.acquireConnection();
    const query = connection.query.bind(connection);
    connection.query = (statement: { text: string }, answered: (error: Error) => void) =>
      statement.text === 'ROLLBACK' ? answered(new Error('canceled')) : query(statement, answered);
    await postgres.client.releaseConnection(connection);
    const stopped = postgres.transaction(async (transaction) => {
      await add(1, transaction);
      throw new Error('stop');
    });
    expect((await failure(stopped))?.message).to.equal('stop');
    expect(await list()).to.be.empty;
  });

  it('takes back a savepoint alone', async () => {
    await postgres.transaction(async (transaction) => {
      await add(1, transaction);
      await transaction.transaction(async (inner) => void (await add(2, inner)));
      const stopped = transaction.transaction(async (inner) => {
        await sendStatement(inner, { text: 'insert into things (id) values ($1)', values: [3] });
        throw new Error('stop');
      });
      expect((await failure(stopped))?.message).to.equal('stop');
    });
    expect(await list()).to.deep.equal([1, 2]);
  });

  it('leaves the end of a transaction to a caller that opens it without work', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const transaction = await postgres.transaction();
      await add(end === 'commit' ? 1 : 2, transaction);
      await transaction[end]();
      expect(transaction.isCompleted()).to.equal(true);
    }
    expect(await list()).to.deep.equal([1]);
  });

  it('gives a connection to those who wait for it in their order, or refuses them in time', async () => {
    const order: unknown[] = [];
    const first = postgres.transaction(async (transaction) => void (await list(transaction)));
    const others = [1, 2, 3].map(async (number) => {
      const { rows } = await sendStatement(postgres, { text: 'select $1::int as number', values: [number] });
      order.push(rows[0]!.number);
    });
    await Promise.all([first, ...others]);
    expect(order).to.deep.equal([1, 2, 3]);
    const refused = await failure(postgres.transaction(() => list()));
    expect(refused?.message).to.match(/Timeout acquiring a connection/);
    expect(await list()).to.be.empty;
  });

  it('opens another connection after one was lost while it was idle', async () => {
    await list();
    const connection = await postgres.client.acquireConnection();
    await postgres.client.releaseConnection(connection);
    const lost = new Promise((resolve) => connection.once('end', resolve));
    await database.postgres.raw('select pg_terminate_backend(?)', [connection.processID]);
    await lost;
    expect(await list()).to.be.empty;
  });
});
