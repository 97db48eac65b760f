/** Statements that are prepared, and those that are sent with the next one of their transaction. */
import { expect } from 'chai';
import { loadAll } from '../../../../storage/concurrency/batched.ts';
import { isUnavailable } from '../../../../storage/foundation/failure.ts';
import type { Database } from '../../../../storage/foundation/stores.ts';
import { DEFERRED, PREPARED } from '../../../../storage/postgres/interceptors/bundled-statements.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { sendStatement } from '../../../../storage/postgres/pool/statement-client.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';
import { until } from '../../../support/until.ts';

const ADD = 'insert into things (id) values (?)';
const FIND = 'select * from things where id = any(?)';

describe('bundled statements', () => {
  let database: FreshDatabase;
  let postgres: Database;
  before(async () => {
    database = await freshDatabase();
    // All statements use one connection, so each shows in which state the one before has left it.
    postgres = connectPostgres(database.postgres_url, { pool_max: 1 });
  });
  after(async () => {
    await postgres.destroy();
    await database.close();
  });
  beforeEach(() => postgres.raw('drop table if exists things; create table things (id int primary key)'));

  const find = async (ids: number[], on: Database = postgres) => (await on.raw(FIND, [ids]).options(PREPARED)).rows;
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: Error) => error,
    );

  it('are written in their order, and read in their transaction', async () => {
    await postgres.transaction(async (transaction) => {
      await transaction.raw(ADD, [1]).options(DEFERRED);
      await transaction.raw('update things set id = id + 1 where id = ?', [1]).options(DEFERRED);
      expect(await find([1, 2], transaction)).to.deep.equal([{ id: 2 }]);
      await transaction.raw(ADD, [3]).options(DEFERRED);
    });
    expect(await find([1, 2, 3])).to.have.lengthOf(2);
  });

  it('are not deferred outside a transaction', async () => {
    await postgres.raw(ADD, [1]).options(DEFERRED);
    expect(await find([1])).to.have.lengthOf(1);
  });

  it('end a transaction without statements, or with nothing but deferred ones', async () => {
    await postgres.transaction(async () => undefined);
    const stopped = await failure(
      postgres.transaction(async (transaction) => {
        await transaction.raw(ADD, [1]).options(DEFERRED);
        throw new Error('stop');
      }),
    );
    expect(stopped?.message).to.equal('stop');
    expect(await find([1])).to.be.empty;
  });

  it('fail with the next statement, and take the whole transaction back', async () => {
    const failed = await failure(
      postgres.transaction(async (transaction) => {
        await transaction.raw(ADD, [1]);
        await transaction.raw(ADD, [1]).options(DEFERRED);
        await find([1], transaction);
      }),
    );
    expect(failed?.message).to.match(/insert into things.* duplicate key/s);
    expect(await find([1])).to.be.empty;
  });

  it('that cannot be encoded are refused, and no other statement gets their answer', async () => {
    const values: unknown[] = [{}];
    Object.assign(values[0] as object, { loop: values[0] });
    await postgres.transaction(async (transaction) => {
      await transaction.raw(ADD, [1]);
      const refused = sendStatement(transaction, { text: 'insert into things (id) values ($1)', values, ...DEFERRED });
      expect((await failure(refused))?.message).to.match(/circular/);
      const found = await Promise.allSettled([find([1], transaction), find([1], transaction)]);
      for (const one of found) expect(one).to.deep.equal({ status: 'fulfilled', value: [{ id: 1 }] });
    });
    expect(await find([1])).to.deep.equal([{ id: 1 }]);
  });

  it('fail with COMMIT, which is then none', async () => {
    const failed = await failure(
      postgres.transaction(async (transaction) => {
        await transaction.raw(ADD, [1]).options(DEFERRED);
        await transaction.raw(ADD, [1]).options(DEFERRED);
      }),
    );
    expect(failed?.message).to.match(/duplicate key/);
    expect(await find([1])).to.be.empty;
    await postgres.raw(ADD, [1]).options(DEFERRED);
    expect(await find([1])).to.have.lengthOf(1);
  });

  it('are taken back to a savepoint, and no further', async () => {
    await postgres.transaction(async (transaction) => {
      await transaction.raw(ADD, [1]).options(DEFERRED);
      const inner = transaction.transaction(async (nested) => {
        await nested.raw(ADD, [2]).options(DEFERRED);
        throw new Error('stop');
      });
      await failure(inner as Promise<unknown>);
    });
    expect(await find([1, 2])).to.deep.equal([{ id: 1 }]);
  });

  it('go before a text of several statements', async () => {
    await postgres.transaction(async (transaction) => {
      await transaction.raw(ADD, [1]).options(DEFERRED);
      await transaction.raw('update things set id = 5; update things set id = id + 1');
    });
    expect(await find([6])).to.have.lengthOf(1);
  });

  it('are prepared again after a column was added, at once or at the start of a transaction', async () => {
    await postgres.raw(ADD, [1]);
    await find([1]);
    await postgres.raw('alter table things add column name text');
    expect(await find([1])).to.deep.equal([{ id: 1, name: null }]);
    await postgres.raw('alter table things add column other text');
    await postgres.transaction(async (transaction) => {
      expect(await find([1], transaction)).to.deep.equal([{ id: 1, name: null, other: null }]);
      await transaction.raw(ADD, [2]).options(DEFERRED);
    });
    expect(await find([1, 2])).to.have.lengthOf(2);
  });

  it('can be tried again after a column was added in the middle of a transaction', async () => {
    await find([1]);
    const failed = await failure(
      postgres.transaction(async (transaction) => {
        await transaction.raw('alter table things add column name text');
        await find([1], transaction);
      }),
    );
    expect(isUnavailable(failed)).to.equal(true);
    expect(await find([1])).to.be.empty;
  });

  it('are prepared again after a failure has skipped them', async () => {
    const text = 'select id + 0 as id from things where id = any(?)';
    const failed = await failure(
      postgres.transaction(async (transaction) => {
        await transaction.raw(ADD, ['x']).options(DEFERRED);
        await transaction.raw(text, [[1]]).options(PREPARED);
      }),
    );
    expect(failed?.message).to.match(/invalid input syntax/);
    expect((await postgres.raw(text, [[1]]).options(PREPARED)).rows).to.be.empty;
  });

  it('leave nothing prepared on the server if their first use fails', async () => {
    await postgres.raw(ADD, [1]);
    for (let time = 0; time < 3; time++)
      await failure(postgres.raw(`${ADD} returning *`, [1]).options(PREPARED) as unknown as Promise<unknown>);
    const sql = `select name from pg_prepared_statements where statement like '%things%returning%'`;
    expect((await postgres.raw(sql)).rows).to.be.empty;
    expect(await find([1])).to.have.lengthOf(1);
  });

  it('that would fail do not prevent the return to a savepoint', async () => {
    await postgres.transaction(async (transaction) => {
      await transaction.raw(ADD, [5]);
      const nested = transaction.transaction(async (savepoint) => {
        await savepoint.raw(ADD, [5]).options(DEFERRED);
        throw new Error('stop');
      });
      expect((await failure(nested as Promise<unknown>))?.message).to.equal('stop');
      expect(await find([5], transaction)).to.have.lengthOf(1);
    });
  });

  it('that fail at the end of a savepoint leave the transaction around it open', async () => {
    await postgres.transaction(async (transaction) => {
      await transaction.raw(ADD, [5]);
      const nested = transaction.transaction(async (savepoint) => {
        await savepoint.raw(ADD, [5]).options(DEFERRED);
      });
      expect(await failure(nested as Promise<unknown>)).to.have.property('code', '23505');
      expect(await find([5], transaction)).to.have.lengthOf(1);
    });
  });

  it('whose name the caller gives are not repeated for ever after a column was added', async () => {
    const connection = await postgres.client.acquireConnection();
    const read = () => connection.query({ name: 'own', text: 'select * from things' });
    try {
      await read();
      await connection.query('alter table things add column more int');
      expect(String(await failure(read()))).to.contain('cached plan must not change result type');
    } finally {
      await postgres.client.releaseConnection(connection);
    }
  });

  it('that are sent together report the failure that the others follow from', async () => {
    const failed = await failure(
      postgres.transaction((transaction) =>
        loadAll(transaction, [
          async (connected) => connected.raw('select 1 / 0'),
          async (connected) => find([1], connected),
          async (connected) => connected.raw('select 1'),
        ]),
      ),
    );
    expect(failed).to.have.property('code', '22012');
    expect(await find([1])).to.be.empty;
  });

  it('of one connection are watched by one probe, however many wait', async () => {
    const other = connectPostgres(database.postgres_url, { pool_max: 2 });
    const sql = 'select sessions::int from pg_stat_database where datname = current_database()';
    const countSessions = async (): Promise<number> => (await other.raw(sql)).rows[0].sessions;
    const lock = await other.transaction();
    try {
      await lock.raw('lock table things in access exclusive mode');
      const before = await countSessions();
      const waiting = postgres.transaction((transaction) =>
        Promise.all([1, 2, 3, 4, 5].map((id) => find([id], transaction))),
      );
      await until('a probe has ended', async () => (await countSessions()) > before, 60_000);
      await lock.rollback();
      await waiting;
      expect((await countSessions()) - before).to.equal(1);
    } finally {
      if (!lock.isCompleted()) await lock.rollback();
      await other.destroy();
    }
  });
});
