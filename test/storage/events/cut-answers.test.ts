/** An answer that ends early is an error, and never fewer rows: a known id would be new, and usage too small. */
import { expect } from 'chai';
import { IdentityHasher } from '../../../core/metering/event/identity.ts';
import { type ClickHouseClient, connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import { countFoundEvents } from '../../../storage/events/find-events.ts';
import { findIdentities, visitIdentityHashes } from '../../../storage/events/identities.ts';
import { streamRawEvents } from '../../../storage/events/raw-events.ts';
import { type Cut, type CuttingProxy, startCuttingProxy } from '../../support/cutting-proxy.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const SCOPE = { tenant_id: 'tenant', environment_id: 'environment' };
const EVENTS = 20_000;

describe('an answer that ends early', () => {
  let database: FreshDatabase;
  let proxy: CuttingProxy;
  let clickhouse: ClickHouseClient;
  const hashes: bigint[] = [];

  before(async () => {
    database = await freshDatabase();
    proxy = await startCuttingProxy(database.clickhouse_url);
    clickhouse = connectClickHouse(proxy.url);
    const hasher = new IdentityHasher(SCOPE);
    for (let index = 0; index < EVENTS; index++) {
      hasher.hash(`event-${index}`);
      hashes.push((BigInt(hasher.high) << 32n) | BigInt(hasher.low));
    }
    const place = `toDateTime64('2026-01-01', 6, 'UTC') + number as timestamp, 0 as partition, number as offset, 0 as position`;
    const own = `'tenant' as tenant_id, 'environment' as environment_id, concat('event-', toString(number)) as event_id`;
    await database.clickhouse.command({
      query: `insert into events (tenant_id, environment_id, event_id, external_customer_id, event_name, timestamp, partition, offset, position, properties, received_at)
              select ${own}, 'customer', 'call', ${place}, '{"units":1}', timestamp from numbers(${EVENTS})`,
    });
    await database.clickhouse.insert({
      table: 'event_identities',
      values: hashes.map((hash, index) => ({
        ...SCOPE,
        id_hash: String(hash),
        event_id: `event-${index}`,
        timestamp: '2026-01-01 00:00:00',
        offset: index,
      })),
      format: 'JSONEachRow',
    });
  });
  afterEach(() => {
    proxy.cut = null;
  });
  after(async () => {
    await clickhouse.close();
    await proxy.close();
    await database.close();
  });

  const wanted = { ...SCOPE, event_name: 'call', before: new Map([[0, BigInt(EVENTS)]]) };
  const reads: [what: string, ends: (body: Buffer) => number[], read: () => Promise<number>][] = [
    [
      'raw events',
      lineEnds,
      async () => {
        let count = 0;
        for await (const _ of streamRawEvents(clickhouse, wanted)) count++;
        return count;
      },
    ],
    [
      'events that are counted by a property',
      lineEnds,
      () => countFoundEvents(clickhouse, { ...SCOPE, property_filters: { units: ['1'] } }),
    ],
    ['the identities of some ids', lineEnds, async () => (await findIdentities(clickhouse, hashes)).length],
    [
      'the identities of a partition',
      (body) => [8, Math.floor(body.length / 16) * 8, body.length - 8].filter((at) => at > 0),
      async () => {
        const range = { first: 0n, last: 2n ** 64n - 1n, partition: 0, from: 0n, before: BigInt(EVENTS) };
        let count = 0;
        await visitIdentityHashes(clickhouse, range, () => void count++);
        return count;
      },
    ],
  ];
  for (const [what, ends, read] of reads) {
    it(what, async () => {
      expect(await read()).to.equal(EVENTS);
      for (const how of ['cleanly', 'broken'] as const) {
        for (const which of [0, 1, 2]) {
          let cuts = 0;
          const at = (body: Buffer) => {
            // Only what is long enough to be the rows: a number before them goes through.
            const end = body.length < 1_000 ? body.length : ends(body)[which]!;
            if (end < body.length) cuts++;
            return end;
          };
          proxy.cut = { how, at } satisfies Cut;
          const answer = await read().catch((error) => error);
          expect(cuts, 'something was cut').to.be.above(0);
          expect(answer, `${how} ${which}: ${answer}`).to.be.instanceOf(Error);
        }
      }
      proxy.cut = null;
      expect(await read()).to.equal(EVENTS);
    });
  }
});

/** Behind the first line, in the middle, and before the last. */
function lineEnds(body: Buffer): number[] {
  const middle = body.indexOf(10, Math.floor(body.length / 2)) + 1;
  const last = body.lastIndexOf(10, body.length - 2) + 1;
  return [body.indexOf(10) + 1, middle, last];
}
