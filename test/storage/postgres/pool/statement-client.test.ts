/** Statements of the Postgres client, which leaves out what Knex repeats for each of them. */
import { expect } from 'chai';
import type { Database } from '../../../../storage/foundation/stores.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';

describe('the client of Postgres', () => {
  let database: FreshDatabase;
  let postgres: Database;
  before(async () => {
    database = await freshDatabase();
    postgres = connectPostgres(database.postgres_url, { pool_max: 1, acquire_timeout_ms: 200 });
  });
  after(async () => {
    await postgres.destroy();
    await database.close();
  });

  const select = async (sql: string, values: unknown[] = []) =>
    Object.values((await postgres.raw(sql, values as never)).rows[0]);

  it('passes values of each kind as parameters', async () => {
    const at = new Date('2031-01-01T00:00:00Z');
    const values = ['a', 1, null, ['x', 'y'], [null, 'z'], Buffer.from('?'), at];
    const sql = 'select ?::text a, ?::int b, ?::text c, ?::text[] d, ?::text[] e, ?::bytea f, ?::timestamptz g';
    for (const _ of ['first', 'again'])
      expect(await select(sql, values)).to.deep.equal([...values.slice(0, 6), '2031-01-01T00:00:00Z']);
  });

  it('knows names, statements and escaped marks among the parameters', async () => {
    expect(await select('select ?? from (select ?::int as "a b") as one', ['a b', 7])).to.deep.equal([7]);
    expect(await select(`select '{"a":1}'::jsonb \\? ? as found`, ['a'])).to.deep.equal([true]);
    expect(await select('select ? as one', [postgres.raw('? + 1', [1])])).to.deep.equal([2]);
    expect(await select('select :a::int + :b::int as sum', { a: 1, b: 2 } as never)).to.deep.equal([3]);
  });

  it('refuses a statement with a value too few, or an undefined one', async () => {
    for (const values of [[1], [1, undefined]])
      expect(await select('select ?::int, ?::int', values).catch(({ message }) => message)).to.match(/binding/);
  });

  it('gives a connection to those who wait for it in their order, or refuses them in time', async () => {
    const order: number[] = [];
    const first = postgres.transaction(async (transaction) => void (await transaction.raw('select 1')));
    const others = [1, 2, 3].map(async (number) =>
      order.push(...((await select('select ?::int', [number])) as [number])),
    );
    await Promise.all([first, ...others]);
    expect(order).to.deep.equal([1, 2, 3]);
    const refused = await postgres.transaction(async () => select('select 1')).catch(({ message }: Error) => message);
    expect(refused).to.match(/Timeout acquiring a connection/);
    expect(await select('select 2 as two')).to.deep.equal([2]);
  });
});
