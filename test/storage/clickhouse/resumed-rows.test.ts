/** No statement waits for a reader: docs/decisions/0021-fairness.md. */
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import type { LongStatement } from '../../../storage/clickhouse/clickhouse.ts';
import { streamResumableRows } from '../../../storage/clickhouse/resumed-rows.ts';
import { samples } from '../../support/samples.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

type Row = [n: number, text: string];

const NUMBERS = `select number, hex(randomString({bytes:UInt32})) from numbers({count:UInt32})
  where toInt64(number) > {after:Int64} order by number`;

describe('rows for a reader that may be slow', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  let asked: (number | null)[];
  beforeEach(() => {
    asked = [];
  });
  const numbers =
    (count: number, bytes: number) =>
    (last: Row | null): LongStatement => {
      asked.push(last?.[0] ?? null);
      const query_params = { count, bytes, after: last === null ? -1 : last[0] };
      return { query: NUMBERS, query_params, settings: { max_block_size: '500' } };
    };
  const running = async () => {
    const answer = await database.clickhouse.query({
      query: `select count() as n from system.processes where query ilike '%from numbers(%' and query not ilike '%system.processes%'`,
      format: 'JSONEachRow',
    });
    return Number((await answer.json<{ n: string }>())[0]!.n);
  };
  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

  it('one that keeps the pace has all of them from one statement', async () => {
    let count = 0;
    for await (const rows of streamResumableRows<Row>(database.clickhouse, numbers(20_000, 100))) count += rows.length;
    expect([count, asked]).to.deep.equal([20_000, [null]]);
  });

  it('while one does not read no statement stands, and the rest is there when it goes on', async () => {
    const reading = streamResumableRows<Row>(database.clickhouse, numbers(60_000, 200), { patience_ms: 50 });
    const all = ((await reading.next()).value as Row[]).map(([n]) => n);
    await until('its statement has ended', async () => (await running()) === 0);
    for (;;) {
      const { done, value } = await reading.next();
      if (done) break;
      all.push(...(value as Row[]).map(([n]) => n));
      await until('the next has ended', async () => (await running()) === 0);
    }
    expect(all).to.deep.equal(upTo(60_000));
    expect(asked.length, 'some MiB from each').to.be.within(4, 12);
  });

  it('whatever the pace, each row is there once, in order', async () => {
    const paces = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(paces, fc.integer({ min: 0, max: 3_000 }), async (waits, count) => {
        const all: number[] = [];
        for await (const rows of streamResumableRows<Row>(database.clickhouse, numbers(count, 2_000), {
          patience_ms: 1,
        })) {
          all.push(...rows.map(([n]) => n));
          // As who works on them, and lets nothing else come.
          const end = performance.now() + (waits.shift() ?? 0);
          while (performance.now() < end);
        }
        expect(all).to.deep.equal(upTo(count));
      }),
      { numRuns: samples(20) },
    );
  });

  it('who leaves, and a signal, end the statement', async () => {
    const leaving = streamResumableRows<Row>(database.clickhouse, numbers(60_000, 200));
    await leaving.next();
    await leaving.return(undefined);
    await until('it has ended', async () => (await running()) === 0);
    const controller = new AbortController();
    const reading = streamResumableRows<Row>(database.clickhouse, numbers(60_000, 200), { signal: controller.signal });
    await reading.next();
    controller.abort();
    const read = async () => {
      while (!(await reading.next()).done);
    };
    expect(await read().catch((error: unknown) => error)).to.be.instanceOf(Error);
    await until('it has ended', async () => (await running()) === 0);
  });
});

/** In ten lines at a time, each of which takes some of the turn of the event loop in which it came; then the line `end`. */
function busyStream(count: number, after: number): Readable {
  const lines = async function* () {
    for (let n = after + 1; n < count; n += 10) {
      await pause(1);
      for (const until_ms = performance.now() + 5; performance.now() < until_ms; );
      yield Array.from({ length: Math.min(10, count - n) }, (_, at) => ({ text: JSON.stringify([n + at, 'x']) }));
    }
    yield [{ text: 'end' }];
  };
  return Readable.from(lines(), { objectMode: true, highWaterMark: 1 });
}

describe('rows for a reader that comes back in the moment in which its statement is ended', () => {
  // To meet it, the answer comes when the test says so, and not when ClickHouse does.
  const client = {
    query: async ({ query_params: { after } }: { query_params: { after: number } }) => ({
      stream: () => busyStream(50, after),
    }),
  } as never;

  it('has all of them, as any other', async () => {
    const question = (last: Row | null) => ({ query: '', query_params: { after: last?.[0] ?? -1 } });
    for (let run = 0; run < 20; run++) {
      const all: number[] = [];
      for await (const rows of streamResumableRows<Row>(client, question, { patience_ms: 20 })) {
        all.push(...rows.map(([n]) => n));
        await pause(20);
      }
      expect(all).to.deep.equal(Array.from({ length: 50 }, (_, n) => n));
    }
  });
});
