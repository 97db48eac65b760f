/** That a statement on the way meets the fate that it is given. */
import { expect } from 'chai';
import { type ClickHouseClient, connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { type Fate, type Statement, type StatementWay, statementsTo } from './statements.ts';

describe('a statement on the way', () => {
  let database: FreshDatabase;
  let way: StatementWay;
  let client: ClickHouseClient;

  beforeEach(async () => {
    database = await freshDatabase();
    way = await statementsTo(database.clickhouse_url);
    client = connectClickHouse(way.url);
    await client.command({ query: 'create table t (a UInt32) engine = MergeTree order by a' });
  });
  afterEach(async () => {
    await client.close();
    await way.close();
    await database.close();
  });

  const count = async () => {
    const answer = await client.query({ query: 'select toUInt32(count()) as n from t', format: 'JSONEachRow' });
    return (await answer.json<{ n: number }>())[0]!.n;
  };
  const insert = () =>
    client.insert({ table: 't', values: [{ a: 1 }], format: 'JSONEachRow' }).then(
      () => 'answered',
      () => 'failed',
    );
  const meet = (fate: Fate) => way.meet(({ kind }) => (kind === 'insert into t' ? fate : undefined));

  /** What the sender heard, and how many rows there were before the release and after it. */
  const fates: [fate: Fate, heard: string, before: number, after: number][] = [
    ['lost', 'failed', 0, 0],
    ['answer lost', 'failed', 1, 1],
    ['late', 'failed', 0, 1],
    ['twice', 'answered', 2, 2],
    ['again late', 'answered', 1, 2],
  ];
  for (const [fate, heard, before, after] of fates) {
    it(fate, async () => {
      meet(fate);
      expect(await insert()).to.equal(heard);
      expect(await count()).to.equal(before);
      await way.release();
      expect(await count()).to.equal(after);
    });
  }

  for (const [fate, heard, before] of [
    ['held', 'answered', 0],
    ['answer held', 'failed', 1],
  ] as const) {
    it(fate, async () => {
      meet(fate);
      const inserting = insert();
      await until('it waits', async () => way.waiting > 0);
      expect(await count()).to.equal(before);
      await way.release();
      expect(await inserting).to.equal(heard);
      expect(await count()).to.equal(1);
    });
  }

  it('is told by what it does', async () => {
    const seen: Statement[] = [];
    way.meet((statement) => void seen.push(statement));
    await insert();
    await client.command({ query: 'insert into t select number from numbers(3)' });
    await client.command({ query: 'insert into t (a) select a + 1 from t where a in (select a from t)' });
    await client.command({ query: 'delete from t where a = {a:UInt32}', query_params: { a: 1 } });
    await count();
    expect(seen.map(({ kind }) => kind)).to.deep.equal([
      'insert into t',
      'insert into t',
      'insert into t from t',
      'delete t',
      'select',
    ]);
  });
});
