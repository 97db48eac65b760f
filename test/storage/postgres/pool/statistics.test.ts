/** Statistics of Postgres are refreshed for tables that have grown, and for no others (docs/decisions/0023-indexes-and-statistics.md). */
import { expect } from 'chai';
import { refreshStatistics } from '../../../../storage/postgres/pool/statistics.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';

describe('statistics of Postgres', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
    await database.postgres.raw('create table filled (id int)');
    await database.postgres.raw('create table still (id int)');
    await database.postgres.raw('insert into still values (1)');
  });
  after(() => database.close());

  const grow = async (rows: number) => {
    await database.postgres.transaction(async (transaction) => {
      await transaction.raw('insert into filled select generate_series(1, ?)', [rows]);
      await transaction.raw('select pg_stat_force_next_flush()');
    });
  };
  /** How many rows it takes the tables to have; -1 before it has looked. */
  const known = async (): Promise<number[]> => {
    await refreshStatistics(database.postgres, ['filled', 'still']);
    const { rows } = await database.postgres.raw(
      `select reltuples::int as rows from pg_class where relname in ('filled', 'still') order by relname`,
    );
    return rows.map(({ rows }: { rows: number }) => rows);
  };

  it('are refreshed when half as much has come as there was, and never for a few', async () => {
    await grow(400);
    expect(await known()).to.deep.equal([-1, -1]);
    await grow(600);
    expect(await known()).to.deep.equal([1000, -1]);
    await grow(600);
    expect(await known()).to.deep.equal([1000, -1]);
    await grow(1000);
    expect(await known()).to.deep.equal([2600, -1]);
  });
});
