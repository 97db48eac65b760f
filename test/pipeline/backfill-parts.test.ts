/** A long day is back-filled in ranges of its customers, and one that was broken off goes on at the range in hand. */
import { expect } from 'chai';
import fc from 'fast-check';
import { auditUsage } from '../../actions/operations/audit/usage.ts';
import { type CustomerRange, listCustomerRanges } from '../../storage/events/customer-ranges.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';

const US_PER_DAY = 86_400_000_000;
const DAYS = [1, 2, 3].map((day) => Date.parse(`2026-03-0${day}T00:00:00Z`) / 86_400_000);
const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;
const PART_EVENTS = 10;
/** One of them has more events a day than a part; names in more than one script, and one that is the beginning of another. */
const CUSTOMERS = ['große', 'a', 'a ', 'ab', 'B', '客户', '🙂', 'zz', 'much', 'c 1', 'c 10', 'c 2'];
/** 0.5 + 1.5 + … of all, without those whose value is no number. */
const TOTAL = Array.from({ length: 240 }, (_none, i) => (i % 40 === 7 ? 0 : i + 0.5)).reduce((a, b) => a + b);

describe('a back-fill in parts', () => {
  let metering: Metering;
  /** Each test back-fills a meter of its own over the same events. */
  let meter: string;
  let meters = 0;
  before(async () => {
    metering = await startMetering({ slice_events_max: PART_EVENTS });
    await metering.send(
      Array.from({ length: 240 }, (_none, i) => ({
        event_id: `e${i}`,
        event_name: 'call',
        external_customer_id: i % 3 === 0 ? 'much' : CUSTOMERS[i % CUSTOMERS.length]!,
        timestamp: new Date(Date.UTC(2026, 2, 1 + Math.floor(i / 80), i % 24)).toISOString(),
        properties: { n: i % 40 === 7 ? 'no number' : `${i}.5` },
      })),
    );
    await metering.waitForPipeline();
  });
  beforeEach(() => {
    meter = `m${++meters}`;
  });
  after(() => metering.stop());

  /** What the test takes away it may choose by a question, which replicas would refuse. */
  const command = (query: string) =>
    metering.stores.clickhouse.command({ query, clickhouse_settings: { allow_nondeterministic_mutations: 1 } });
  const count = async () => {
    await metering.announce(meter, { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.waitForPipeline();
  };
  const ranges = async (day: number, events_max = PART_EVENTS) => {
    const bounds = { start_us: day * US_PER_DAY, end_us: (day + 1) * US_PER_DAY };
    const before = new Map([0, 1, 2].map((partition) => [partition, 1_000_000n]));
    return listCustomerRanges(
      metering.stores.clickhouse,
      { ...SCOPE, event_name: 'call', ...bounds, before },
      events_max,
    );
  };
  const unusable = async () => {
    const rows = await metering.rows<{ event_id: string }>(
      `select event_id from event_outcomes where meter_id = '${meter}' order by event_id`,
    );
    return rows.map(({ event_id }) => event_id);
  };
  const isRight = async () => {
    const { differences, rows } = await auditUsage(metering.stores, { meter_id: meter }, () => {});
    expect({ differences, some: rows > 0 }).to.deep.equal({ differences: 0, some: true });
    let total = 0;
    for (const customer of CUSTOMERS) total += Number(await metering.usage(meter, customer, MARCH));
    expect(total).to.equal(TOTAL);
    expect(await unusable()).to.deep.equal(['e127', 'e167', 'e207', 'e47', 'e7', 'e87']);
  };
  /** As a worker leaves it that is killed in a part of the second day, before anything of the part arrived. */
  const breakOff = async (inHand: { part: number }) => {
    await metering.pause();
    await withoutTokens();
    await metering.stores.postgres.raw(`update meters set state = 'backfilling' where id = ?`, [meter]);
    await metering.stores.postgres.raw(
      `update meter_versions set state = 'backfilling', live_at = null, backfilled_until = ?, backfilling_day = ?,
              backfilling_part = ?, part_since = nextval('write_attempts') where meter_id = ?`,
      [DAYS[0]!, DAYS[1]!, inHand.part, meter],
    );
  };
  const withoutTokens = async () => {
    for (const table of ['usage_buckets', 'event_outcomes'])
      await command(`alter table ${table} modify setting non_replicated_deduplication_window = 0`);
  };
  /** Takes away what a back-fill has written of these events, as if it had not come to them. */
  const forget = async (events: string) => {
    await command(`delete from usage_buckets where meter_id = '${meter}' and (toDate(bucket_start), external_customer_id) in
                     (select toDate(timestamp), external_customer_id from events where ${events})`);
    await command(`delete from event_outcomes where meter_id = '${meter}' and event_id in
                     (select event_id from events where ${events})`);
  };

  it('cuts the customers into ranges that leave nobody out', async () => {
    const events = await metering.rows<{ customer: string; n: string }>(
      `select external_customer_id as customer, count() as n from events
        where toDate(timestamp) = '2026-03-02' group by customer order by customer`,
    );
    const names = events.map(({ customer }) => Buffer.from(customer));
    const isIn = (name: Buffer, { after, until }: CustomerRange) =>
      (after === undefined || name.compare(Buffer.from(after)) > 0) &&
      (until === undefined || name.compare(Buffer.from(until)) <= 0);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 100 }), async (events_max) => {
        const found = await ranges(DAYS[1]!, events_max);
        for (const name of [...names, Buffer.from(''), Buffer.from('zzz'), Buffer.from([0xff])])
          expect(found.filter((range) => isIn(name, range)).length).to.equal(1);
        for (const range of found) {
          const some = events.filter((_of, index) => isIn(names[index]!, range)).map(({ n }) => Number(n));
          // Without its last customer it is short of what a part holds.
          expect(some.slice(0, -1).reduce((a, b) => a + b, 0)).to.be.below(events_max);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('counts every customer once', async () => {
    await count();
    await isRight();
    const { rows } = await metering.stores.postgres.raw(
      `select backfilling_day as day, backfilling_part as part from meter_versions where meter_id = ?`,
      [meter],
    );
    expect(rows).to.deep.equal([{ day: DAYS[2], part: (await ranges(DAYS[2]!)).length - 1 }]);
    expect(rows[0].part).to.be.above(3);
  });

  it('goes on at the part that was in hand, and writes nothing twice', async () => {
    await count();
    const written = await ranges(DAYS[1]!);
    expect(written.length).to.be.above(4);
    await breakOff({ part: 2 });
    const { until } = written[1]!;
    await forget(
      `toDate(timestamp) = '2026-03-02' and external_customer_id > '${until}' or toDate(timestamp) = '2026-03-03'`,
    );
    await metering.resume();
    await metering.waitForPipeline();
    await isRight();
  });

  it('does not write a part again that arrived, only the outcomes that did not', async () => {
    await count();
    await metering.pause();
    await withoutTokens();
    await metering.stores.postgres.raw(
      `update meter_versions set state = 'backfilling', live_at = null, backfilled_until = backfilled_until - 1
        where meter_id = ?`,
      [meter],
    );
    await metering.resume();
    await metering.waitForPipeline();
    await isRight();
  });

  it('leaves the day to a rebuild that a version before had in hand', async () => {
    await count();
    await breakOff({ part: 0 });
    await metering.stores.postgres.raw(
      `update meter_versions set uncertain_days = array[?::integer] where meter_id = ?`,
      [DAYS[1]!, meter],
    );
    await forget(`toDate(timestamp) = '2026-03-03'`);
    await metering.resume();
    await metering.waitForPipeline();
    const { rows } = await metering.stores.postgres.raw(`select reason from bucket_rebuilds`);
    expect(rows.length).to.equal(1);
    await isRight();
  });

  it('cuts a day as it was begun, whatever the settings say now', async () => {
    await count();
    const { rows } = await metering.stores.postgres.raw(
      `select backfill_part_events as events from meter_versions where meter_id = ?`,
      [meter],
    );
    expect(rows).to.deep.equal([{ events: PART_EVENTS }]);
    await breakOff({ part: 2 });
    await metering.stores.postgres.raw(`update meter_versions set backfill_part_events = 1000 where meter_id = ?`, [
      meter,
    ]);
    await forget(`toDate(timestamp) = '2026-03-03'`);
    await metering.resume();
    await metering.waitForPipeline();
    // One part of a thousand: the second of the day is behind it, and nothing of the day is written again.
    await isRight();
  });
});
