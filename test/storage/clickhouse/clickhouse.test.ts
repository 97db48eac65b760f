import { expect } from 'chai';
import { z } from 'zod';
import {
  type ClickHouseClient,
  connectClickHouse,
  defineStatement,
  streamRows,
} from '../../../storage/clickhouse/clickhouse.ts';
import { testStores } from '../../support/stores.ts';

const squares = defineStatement({
  name: 'squares below',
  sql: 'SELECT number, toDecimal128(number, 3) * number AS square FROM numbers({limit:UInt32}) WHERE toString(number) != {not:String} ORDER BY number',
  params: z.object({ limit: z.number().int(), not: z.string() }),
  row: z.object({ number: z.string(), square: z.string() }),
});

describe('question', () => {
  let client: ClickHouseClient;
  let url: string;
  before(async () => {
    url = (await testStores()).clickhouse_url;
    client = connectClickHouse(url);
  });
  after(() => client.close());
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => expect.fail('must fail'),
      (error) => error,
    );

  it('answers rows of its shape, with exact text for numbers', async () => {
    expect(await squares.run(client, { limit: 3, not: "1' OR 1=1 --" })).to.deep.equal([
      { number: '0', square: '0' },
      { number: '1', square: '1' },
      { number: '2', square: '4' },
    ]);
  });

  it('long answers come row by row', async () => {
    let seen = 0;
    const query = 'SELECT number, toString(number) FROM numbers({limit:UInt32})';
    for await (const rows of streamRows<[number, string]>(client, { query, query_params: { limit: 200_000 } })) {
      for (const [number, text] of rows) {
        if (number !== seen || text !== String(seen)) expect.fail(`row ${seen} is ${number}, ${text}`);
        seen += 1;
      }
    }
    expect(seen).to.equal(200_000);
  });

  it('a long answer that fails on its way is a failure', async () => {
    const query = 'SELECT throwIf(number = 900000) FROM numbers(1000000)';
    const drain = async () => {
      for await (const _ of streamRows(client, { query, query_params: {} })) continue;
    };
    expect(String(await failure(drain()))).to.contain("Value passed to 'throwIf'");
  });

  it('refuses parameters of another shape', async () => {
    const error = await failure(squares.run(client, { limit: 1.5, not: '' }));
    expect(error).to.be.instanceOf(z.ZodError);
  });

  it('refuses a name that only the SQL or only the parameters know', () => {
    const parts = { name: 'odd', row: z.object({}) };
    const params = z.object({ a: z.string() });
    expect(() => defineStatement({ ...parts, params, sql: 'SELECT {b:String}' })).to.throw(
      'question odd: its SQL and its parameters differ in b, a',
    );
  });

  it('throws database_error for what the store refuses', async () => {
    const parts = { name: 'lost', params: z.object({}), row: z.object({}) };
    const lost = defineStatement({ ...parts, sql: 'SELECT * FROM no_such_table' });
    const half_way = defineStatement({ ...parts, sql: 'SELECT throwIf(number = 900000) AS x FROM numbers(1000000)' });
    for (const work of [lost.run(client, {}), half_way.run(client, {})]) {
      expect(await failure(work)).to.include({ name: 'FarthingError', code: 'database_error', http_status_code: 500 });
    }
  });

  it('throws database_error for a row of another shape', async () => {
    const odd = defineStatement({
      name: 'odd',
      sql: 'SELECT 1 AS a',
      params: z.object({}),
      row: z.object({ a: z.string() }),
    });
    const error = await failure(odd.run(client, {}));
    expect(error).to.include({ code: 'database_error' });
    expect(String(error)).to.contain('a row has another shape');
  });

  it('throws service_unavailable when the store is not there or does not answer in time', async () => {
    const gone = connectClickHouse('http://nobody:x@127.0.0.1:9/default');
    const slow = connectClickHouse(url, { request_timeout_ms: 200 });
    const sleeper = defineStatement({
      name: 'sleeper',
      sql: 'SELECT sleep(2) AS a',
      params: z.object({}),
      row: z.object({}),
    });
    for (const work of [sleeper.run(gone, {}), sleeper.run(slow, {})]) {
      expect(await failure(work)).to.include({ code: 'service_unavailable', http_status_code: 503 });
    }
    await Promise.all([gone.close(), slow.close()]);
  });

  it('works in the database that it is told, whatever the URL says', async () => {
    const system = connectClickHouse(url, { database: 'system' });
    const where = defineStatement({
      name: 'where',
      sql: 'SELECT currentDatabase() AS d',
      params: z.object({}),
      row: z.object({ d: z.string() }),
    });
    expect(await where.run(system, {})).to.deep.equal([{ d: 'system' }]);
    await system.close();
  });
});
