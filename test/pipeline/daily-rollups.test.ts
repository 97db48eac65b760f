/** Daily rollups of days that are over: what they are made of, what comes late, and what a crash leaves (docs/decisions/0001). */
import { expect } from 'chai';
import { requestCorrection } from '../../actions/metering/events/request-correction.ts';
import { auditUsage, type UsageDifference } from '../../actions/operations/audit/usage.ts';
import type { MeterAggregation } from '../../core/metering/meter-definition.ts';
import { EVERY_DAY, readDaysBefore } from '../../storage/progress/partition-progress.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';

const METERS: Readonly<Record<string, MeterAggregation>> = {
  m_count: { type: 'COUNT' },
  m_sum: { type: 'SUM', field: 'n' },
  m_unique: { type: 'COUNT_UNIQUE', field: 'host' },
  m_latest: { type: 'LATEST', field: 'n' },
  m_weighted: { type: 'WEIGHTED_SUM', field: 'n' },
  m_max: { type: 'MAX', field: 'n', bucket_size: 'DAY', group_by: 'host' },
  m_minutes: { type: 'SUM', field: 'n', bucket_size: 'MINUTE' },
};
const CUSTOMERS = ['c0', 'c1', 'c2'];
const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;
const RAGGED = ['2026-03-01T23:10:00.5Z', '2026-03-04T10:20:00Z'] as const;

describe('daily rollups', () => {
  let metering: Metering;
  const startWith = async (meters: readonly string[]) => {
    metering = await startMetering({ partitions: 2 });
    for (const id of meters) await metering.announce(id, { event_name: 'call', filters: [], aggregation: METERS[id]! });
    await metering.waitForPipeline();
  };
  afterEach(() => metering.stop());

  /** Of the first six days of March. */
  const events = (from: number, to: number) =>
    Array.from({ length: to - from }, (_none, index) => {
      const i = from + index;
      return {
        event_id: `e${i}`,
        event_name: 'call',
        external_customer_id: CUSTOMERS[i % 3]!,
        timestamp: new Date(Date.UTC(2026, 2, 1 + (i % 6), (i * 7) % 24, i % 60)).toISOString(),
        properties: { n: `${i % 9}.${i}`, host: `h${i % 5}` },
      };
    });
  const send = async (from: number, to: number) => {
    await metering.send(events(from, to));
    await metering.waitForPipeline();
  };
  const makeDailyRollups = async (before: string) => {
    await metering.requestDailyRollups(before);
    await metering.waitForPipeline();
  };
  const answers = async () => {
    const queries = Object.keys(METERS).flatMap((meter) =>
      CUSTOMERS.flatMap((customer) => [MARCH, RAGGED].map((range) => ({ meter, customer, range }))),
    );
    // Queries of one meter that are made at the same time share their statements.
    const found = await Promise.all(
      queries.map(async ({ meter, customer, range }) => [
        `${meter} ${customer} ${range[0]}`,
        await metering.usage(meter, customer, range),
      ]),
    );
    return Object.fromEntries(found) as Record<string, string>;
  };
  const differences = async () => {
    const found: UsageDifference[] = [];
    await auditUsage(metering.stores, {}, (difference) => found.push(difference));
    return found;
  };
  /** Day of the month, and how many events its daily rollups of a meter hold. */
  const heldByDay = async (meter: string) => {
    const rows = await metering.rows<{ day: number; n: string }>(
      `select toDayOfMonth(bucket_start) as day, sum(event_count) as n from usage_buckets
        where meter_id = '${meter}' and size = 'DAY' group by day order by day`,
    );
    return rows.map(({ day, n }) => [day, Number(n)]);
  };
  const days = async () => readDaysBefore(await readProgress(metering.stores.postgres));

  describe('of every type of aggregation', () => {
    beforeEach(() => startWith(Object.keys(METERS)));

    it('are made of the base rows of the days that were asked for, and change no answer', async () => {
      await send(0, 360);
      expect(await heldByDay('m_sum')).to.deep.equal([]);
      const before = await answers();
      await makeDailyRollups('2026-03-04T00:00:00Z');
      expect(await heldByDay('m_sum')).to.deep.equal([
        [1, 60],
        [2, 60],
        [3, 60],
      ]);
      expect(await answers()).to.deep.equal(before);
      expect(await differences()).to.deep.equal([]);
      await makeDailyRollups('2026-03-07T00:00:00Z');
      expect(await heldByDay('m_unique')).to.deep.equal([1, 2, 3, 4, 5, 6].map((day) => [day, 60]));
      expect(await answers()).to.deep.equal(before);
      expect(await differences()).to.deep.equal([]);
    });

    it('of days that have them are written with what comes late, and of other days not', async () => {
      await send(0, 60);
      await makeDailyRollups('2026-03-04T00:00:00Z');
      await send(60, 360);
      expect(await heldByDay('m_max')).to.deep.equal([
        [1, 60],
        [2, 60],
        [3, 60],
      ]);
      expect(await differences()).to.deep.equal([]);
      const all = await answers();
      await makeDailyRollups('2026-04-01T00:00:00Z');
      expect(await answers()).to.deep.equal(all);
      expect(await differences()).to.deep.equal([]);
    });

    it('that a try has left count for nothing, and the next try takes them away', async () => {
      await send(0, 60);
      await metering.stores.clickhouse.command({
        query: `insert into usage_buckets (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start, group_key, event_count, sum)
                select tenant_id, environment_id, meter_id, meter_version, 'DAY', external_customer_id, toDateTime64('2026-03-02 00:00:00', 0, 'UTC'), group_key, 7, 7
                  from usage_buckets where meter_id in ('m_sum', 'm_count') group by all`,
      });
      const before = await answers();
      expect(before['m_count c1 2026-03-01T00:00:00Z']).to.equal('20');
      expect(await differences()).to.deep.equal([]);
      await makeDailyRollups('2026-03-07T00:00:00Z');
      expect(await heldByDay('m_count')).to.deep.equal([1, 2, 3, 4, 5, 6].map((day) => [day, 10]));
      expect(await answers()).to.deep.equal(before);
      expect(await differences()).to.deep.equal([]);
    });

    it('of an installation that wrote them with every slice count for the days that are over, and the others are taken away', async () => {
      await metering.stores.postgres.raw(`update slices set days_before = ?`, [EVERY_DAY]);
      await send(0, 60);
      const every = [1, 2, 3, 4, 5, 6].map((day) => [day, 10]);
      expect(await heldByDay('m_sum')).to.deep.equal(every);
      const before = await answers();
      expect(await differences()).to.deep.equal([]);
      await makeDailyRollups('2026-03-04T00:00:00Z');
      expect(await days()).to.equal(Date.parse('2026-03-04T00:00:00Z') / 86_400_000);
      expect(await answers()).to.deep.equal(before);
      await send(60, 120);
      const all = await answers();
      expect(all['m_count c1 2026-03-01T00:00:00Z']).to.equal('40');
      expect(await differences()).to.deep.equal([]);
      await makeDailyRollups('2026-03-06T00:00:00Z');
      expect(await heldByDay('m_sum')).to.deep.equal([1, 2, 3, 4, 5].map((day) => [day, 20]));
      expect(await answers()).to.deep.equal(all);
      expect(await differences()).to.deep.equal([]);
    });

    it('come to meters that are made later, and follow corrections', async () => {
      await send(0, 120);
      await makeDailyRollups('2026-03-05T00:00:00Z');
      await metering.announce('m_later', { event_name: 'call', filters: [], aggregation: METERS['m_sum']! });
      await metering.waitForPipeline();
      expect(await heldByDay('m_later')).to.deep.equal([1, 2, 3, 4].map((day) => [day, 20]));
      const asked = { reason: 'test', user_id: 'user_1', now: new Date() };
      for (const event_id of ['e0', 'e1', 'e5'])
        await requestCorrection(metering.stores, SCOPE, { ...asked, event_id, action: 'void', replacement: null });
      await metering.waitForPipeline();
      expect(await heldByDay('m_later')).to.deep.equal([
        [1, 19],
        [2, 19],
        [3, 20],
        [4, 20],
      ]);
      expect(await metering.usage('m_later', 'c0', MARCH)).to.equal(await metering.usage('m_sum', 'c0', MARCH));
      expect(await differences()).to.deep.equal([]);
    });
  });

  describe('of two meters', () => {
    beforeEach(() => startWith(['m_sum', 'm_count']));

    it('are asked for again to no effect, and never become fewer', async () => {
      await send(0, 60);
      await makeDailyRollups('2026-03-07T00:00:00Z');
      const [first] = await heldByDay('m_count');
      const made = await days();
      await makeDailyRollups('2026-03-07T00:00:00Z');
      await makeDailyRollups('2026-03-02T00:00:00Z');
      expect((await heldByDay('m_count'))[0]).to.deep.equal(first);
      expect(await days()).to.equal(made);
    });

    it('are written again however soon after they were taken away', async () => {
      await send(0, 60);
      for (let tries = 0; tries < 6; tries++) {
        await makeDailyRollups('2026-03-03T00:00:00Z');
        expect(await heldByDay('m_sum')).to.deep.equal([1, 2].map((day) => [day, 10]));
        // As if the engine had refused the last of them: the next try begins at the first.
        await metering.stores.postgres.raw(`update slices set days_before = 0`);
      }
    });

    it('wait while the past of a meter is being counted', async () => {
      await send(0, 60);
      await metering.pause();
      await metering.requestDailyRollups('2026-03-07T00:00:00Z');
      await metering.announce('m_later', { event_name: 'call', filters: [], aggregation: METERS['m_sum']! });
      await metering.resume();
      await metering.waitForPipeline();
      expect(await days()).to.equal(0);
      expect(await heldByDay('m_sum')).to.deep.equal([]);
      await makeDailyRollups('2026-03-07T00:00:00Z');
      expect(await heldByDay('m_later')).to.deep.equal([1, 2, 3, 4, 5, 6].map((day) => [day, 10]));
      expect(await differences()).to.deep.equal([]);
    });

    it('of a worker that ended in the middle of them are made by the next one', async () => {
      await send(0, 60);
      await metering.pause();
      // As a crash leaves it behind the insert of the first day: the bucket rows are locked, and nothing of that try can still come.
      const { rows } = await metering.stores.postgres.raw(`select min(partition) as first from slices`);
      await metering.stores.postgres.raw(`update slices set gate = ?, gate_until = null`, [`adding:${rows[0].first}`]);
      await metering.requestDailyRollups('2026-03-07T00:00:00Z');
      await metering.resume();
      await metering.waitForPipeline();
      expect(await heldByDay('m_sum')).to.deep.equal([1, 2, 3, 4, 5, 6].map((day) => [day, 10]));
      await send(60, 120);
      expect(await heldByDay('m_sum')).to.deep.equal([1, 2, 3, 4, 5, 6].map((day) => [day, 20]));
      expect(await differences()).to.deep.equal([]);
    });
  });
});
