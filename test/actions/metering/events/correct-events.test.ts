import { expect } from 'chai';
import { requestCorrection } from '../../../../actions/metering/events/request-correction.ts';
import { auditUsage, type UsageDifference } from '../../../../actions/operations/audit/usage.ts';
import { toPartition } from '../../../../core/metering/event/identity.ts';
import { relayControlMessages } from '../../../../pipeline/control/relay.ts';
import { loadAcceptedEvent, writeCorrections } from '../../../../storage/events/corrections.ts';
import { computeEventShard, requestCorrectionsAgain } from '../../../../storage/progress/corrections.ts';
import { enqueueMessage } from '../../../../storage/progress/outbox.ts';
import { type Metering, SCOPE, startMetering } from '../../../support/metering.ts';
import { until } from '../../../support/until.ts';

const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;
const METERS = {
  m_sum: { type: 'SUM', field: 'n' },
  m_unique: { type: 'COUNT_UNIQUE', field: 'host' },
  m_latest: { type: 'LATEST', field: 'n' },
  m_max: { type: 'MAX', field: 'n', bucket_size: 'MINUTE', group_by: 'host' },
} as const;
const CALLS = { event_name: 'call', filters: [{ key: 'on', values: ['yes'] }] };

describe('corrections meet the bucket rows', () => {
  let metering: Metering;
  /** Events and customers of each test are its own. */
  let own = 0;
  before(async () => {
    metering = await startMetering();
    for (const [id, aggregation] of Object.entries(METERS)) await metering.announce(id, { ...CALLS, aggregation });
    await metering.waitForPipeline();
  });
  beforeEach(() => void own++);
  afterEach(async () => {
    await metering.resume();
    // Each part that a statement reads costs a millisecond.
    for (const table of ['events', 'event_identities', 'usage_buckets'])
      await metering.stores.clickhouse.command({
        query: `optimize table ${table} final`,
        clickhouse_settings: { optimize_skip_merged_partitions: 1 },
      });
  });
  after(() => metering.stop());

  const customer = (name: string) => `${name} of ${own}`;
  const idOf = (i: number) => `e${i} of ${own}`;
  const event = (i: number, fields = {}) => ({
    event_id: idOf(i),
    event_name: 'call',
    external_customer_id: customer(`c${i % 2}`),
    timestamp: new Date(Date.UTC(2026, 2, 1 + (i % 2), 10, i % 60)).toISOString(),
    properties: { n: String(i), host: `h${i % 10}`, on: 'yes' },
    ...fields,
  });
  const events = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => event(from + i));
  const asked = { reason: 'test', user_id: 'user_1', now: new Date() };
  const voided = (i: number) =>
    requestCorrection(metering.stores, SCOPE, { ...asked, event_id: idOf(i), action: 'void', replacement: null });
  const replaced = (i: number, by: object) =>
    requestCorrection(metering.stores, SCOPE, {
      ...asked,
      event_id: idOf(i),
      action: 'replace',
      replacement: JSON.stringify(by),
    });
  const differences = async () => {
    const found: UsageDifference[] = [];
    await auditUsage(metering.stores, {}, (difference) => found.push(difference));
    return found;
  };
  /** Each partition counts the rebuilds of all, so the largest count is that of all partitions. */
  const rebuilds = async () =>
    Number((await metering.stores.postgres.raw(`select max(rebuilds) as n from slices`)).rows[0].n);
  const usage = (meter: string, name: string, range: readonly [string, string]) =>
    metering.usage(meter, customer(name), range);
  const all = (meter: string, name = 'c0') => usage(meter, name, MARCH);

  describe('of meters that stay as they are', () => {
    /** The customers of each test are its own, so a difference names its test. */
    after(async () => expect(await differences()).to.deep.equal([]));

    it('every type of aggregation gives back what was voided and takes in what replaced it', async () => {
      await metering.send(events(0, 40));
      await metering.waitForPipeline();
      expect([await all('m_sum'), await all('m_unique'), await all('m_latest')]).to.deep.equal(['380', '5', '38']);
      await voided(38);
      for (const i of [8, 18, 28]) await voided(i);
      await replaced(0, event(0, { properties: { n: '0.5', host: 'h0', on: 'no' } }));
      await replaced(2, event(2, { external_customer_id: customer('c1'), timestamp: '2026-03-20T00:00:00Z' }));
      await metering.waitForPipeline();
      // 380 without 38 + 8 + 18 + 28 + 0 + 2; the host h8 is gone; the newest of the first day is e36.
      expect([await all('m_sum'), await all('m_unique'), await all('m_latest')]).to.deep.equal(['286', '4', '36']);
      expect(await all('m_latest', 'c1')).to.equal('2');
      expect(await all('m_max')).to.equal(String(286));
    });

    it('those that wait with events between them are one rebuild of each partition, and the events count with them', async () => {
      await metering.send(events(0, 30));
      await metering.waitForPipeline();
      await metering.pause();
      const before = await rebuilds();
      for (let i = 0; i < 16; i++) {
        await metering.send(events(30 + 4 * i, 34 + 4 * i));
        // Corrections concern events that were there, and some that wait before the correction.
        if (i % 2 === 0) await voided(i);
        else await replaced(30 + 4 * i, event(30 + 4 * i, { properties: { n: '0', host: 'h1', on: 'yes' } }));
        await relayControlMessages(metering.stores, Date.now());
      }
      await metering.resume();
      await metering.waitForPipeline();
      // Each of three partitions counts the rebuilds of all of them.
      expect((await rebuilds()) - before).to.be.within(3, 9);
      // Even ones from 0 to 92, without those below 16 and the eight 34, 42, …, 90 that are 0 now.
      expect(await all('m_sum')).to.equal(String(2162 - 56 - 496));
      expect(await all('m_sum', 'c1')).to.equal(String(47 * 47));
    });

    it('one of a dead letter leaves alone the event that is sent under its id afterwards', async () => {
      await metering.pause();
      await metering.send([{ event_id: idOf(6), event_name: 'call' }]);
      const { id } = await voided(6);
      await relayControlMessages(metering.stores, Date.now());
      await metering.send([event(6)]);
      await metering.resume();
      await metering.waitForPipeline();
      expect(await all('m_sum')).to.equal('6');
      const { rows } = await metering.stores.postgres.raw(`select state from event_corrections where id = ?`, [id]);
      expect(rows).to.deep.equal([{ state: 'unknown_event' }]);
    });

    it('one that is applied again and a new one of the same event take what was applied between them into account', async () => {
      await metering.send(events(0, 6));
      await metering.waitForPipeline();
      const { id } = await replaced(4, event(4, { timestamp: '2026-03-15T00:00:00Z' }));
      await metering.waitForPipeline();
      await replaced(4, event(4, { external_customer_id: customer('c1'), timestamp: '2026-03-20T00:00:00Z' }));
      await metering.waitForPipeline();
      await metering.pause();
      await requestCorrectionsAgain(metering.stores.postgres, [id]);
      await replaced(4, event(4, { timestamp: undefined }));
      await relayControlMessages(metering.stores, Date.now());
      await metering.resume();
      await metering.waitForPipeline();
      // It has no time of its own, so it keeps that of the second one.
      expect(await usage('m_sum', 'c0', ['2026-03-20T00:00:00Z', '2026-03-21T00:00:00Z'])).to.equal('4');
      expect([await all('m_sum'), await all('m_sum', 'c1')]).to.deep.equal(['6', '9']);
    });

    it('waiting corrections are one rebuild, also several of one event', async () => {
      await metering.send(events(0, 20));
      await metering.waitForPipeline();
      await metering.pause();
      const before = await rebuilds();
      for (const n of ['100', '200', '300']) await replaced(4, event(4, { properties: { n, host: 'x', on: 'yes' } }));
      await replaced(4, event(4, { external_customer_id: customer('c1') }));
      for (let i = 6; i < 20; i += 2) await voided(i);
      await metering.resume();
      await metering.waitForPipeline();
      // 0 and 2 are left; three partitions have one rebuild each, if all their messages came at once.
      expect([await all('m_sum'), await all('m_sum', 'c1')]).to.deep.equal(['2', '104']);
      expect((await rebuilds()) - before).to.be.within(1, 6);
    });

    it('takes the event away from where it was, also when an earlier try had stored the correction', async () => {
      await metering.send(events(0, 20));
      await metering.waitForPipeline();
      await metering.pause();
      const { id } = await replaced(
        4,
        event(4, { external_customer_id: customer('c1'), timestamp: '2026-03-20T00:00:00Z' }),
      );
      const original = (await loadAcceptedEvent(metering.stores.clickhouse, SCOPE, idOf(4)))!;
      await writeCorrections(
        metering.stores.clickhouse,
        [
          {
            ...original,
            ...SCOPE,
            event_id: idOf(4),
            action: 'replace',
            sequence: id,
            external_customer_id: customer('c1'),
            timestamp_us: Date.UTC(2026, 2, 20) * 1000,
            partition: original.event_partition,
            offset: 1,
          },
        ],
        { writer: 'test', attempt: 1n },
      );
      await metering.resume();
      await metering.waitForPipeline();
      expect([await all('m_sum'), await all('m_sum', 'c1')]).to.deep.equal(['86', '104']);
    });

    it('a message that comes twice, and one for an id that never came, change nothing', async () => {
      await metering.send(events(0, 4));
      await metering.waitForPipeline();
      const correction = await voided(2);
      await metering.waitForPipeline();
      const message = { type: 'correction', correction_id: correction.id };
      await enqueueMessage(metering.stores.postgres, SCOPE, message, computeEventShard(SCOPE, idOf(2)));
      await metering.waitForPipeline();
      expect(await all('m_sum')).to.equal('0');
      const refusal = await requestCorrection(metering.stores, SCOPE, {
        ...asked,
        event_id: 'never',
        action: 'void',
        replacement: null,
      }).catch((error) => error);
      expect(refusal.code).to.equal('not_found');
      await until(
        'the bucket rows are unlocked',
        async () =>
          (await metering.stores.postgres.raw(`select 1 from slices where gate is not null`)).rows.length === 0,
      );
    });
  });

  describe('of meters that change, and of rows that are taken away', () => {
    it('also of a meter that counts no more, and of what a version before counted', async () => {
      for (const [id, type] of [
        ['m_stopped', 'SUM'],
        ['m_changed', 'LATEST'],
      ] as const)
        await metering.announce(id, { ...CALLS, aggregation: { type, field: 'n' } });
      await metering.waitForPipeline();
      await metering.send(events(0, 10));
      await metering.waitForPipeline();
      await metering.announce('m_stopped', null);
      const other = { type: 'LATEST', field: 'n' } as const;
      await metering.announce('m_changed', {
        event_name: 'call',
        filters: [{ key: 'on', values: ['no'] }],
        aggregation: other,
      });
      await metering.waitForPipeline();
      await voided(8);
      await replaced(6, event(6, { properties: { n: '60', host: 'h0', on: 'no' } }));
      await metering.waitForPipeline();
      // 0 + 2 + 4 of the meter that stopped before it could count what the sixth says now.
      expect([await all('m_stopped'), await all('m_changed')]).to.deep.equal(['6', '60']);
      expect(await differences()).to.deep.equal([]);
    });

    it('while events flow in, and a meter that comes on the way counts them as corrected', async () => {
      await metering.send(events(0, 60));
      await metering.waitForPipeline();
      const flood = (async () => {
        for (let from = 60; from < 220; from += 20) await metering.send(events(from, from + 20));
      })();
      for (let i = 0; i < 6; i += 2) await voided(i);
      await metering.announce('m_late', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
      for (let i = 6; i < 12; i += 2) await replaced(i, event(i, { properties: { n: '1000', host: 'x', on: 'yes' } }));
      await metering.announce('m_sum', { event_name: 'call', filters: [], aggregation: METERS.m_sum });
      for (let i = 12; i < 16; i += 2) await voided(i);
      await flood;
      await metering.waitForPipeline();
      // The even numbers below 220 are 11,990; the first eight of them are 56, and three of these are 1000 now.
      for (const meter of ['m_sum', 'm_late']) expect(await all(meter)).to.equal(String(11_990 - 56 + 3000));
      expect(await differences()).to.deep.equal([]);
    });

    it('a rebuild that was broken off half-way is done again by the next owner', async () => {
      await metering.send(events(0, 20));
      await metering.waitForPipeline();
      await metering.pause();
      await voided(4);
      const { postgres, clickhouse, log } = metering.stores;
      const partition = toPartition(computeEventShard(SCOPE, idOf(4)), log.partition_count);
      // As a worker leaves it that dies between the delete and the insert.
      const { rows } = await postgres.raw(`select next_offset from slices where partition = ?`, [partition]);
      await postgres.raw(`update slices set gate = ?`, [`partition:${partition}`]);
      await postgres.raw(
        `update slices set gate_attempt = nextval('write_attempts'), slice_from = ?, slice_to = ?, phase = 'raw' where partition = ?`,
        [rows[0].next_offset, String(BigInt(rows[0].next_offset) + 1n), partition],
      );
      await clickhouse.command({
        query: `alter table usage_buckets delete where external_customer_id = '${customer('c0')}'`,
        clickhouse_settings: { mutations_sync: '2' },
      });
      // What others read meanwhile comes from the raw events.
      expect(await all('m_sum')).to.equal('90');
      await metering.resume();
      await metering.waitForPipeline();
      expect(await all('m_sum')).to.equal('86');
      const lock = await postgres.raw(`select count(*)::int as locked from slices where gate is not null`);
      expect(lock.rows[0].locked).to.equal(0);
      const wrong = await differences();
      // The customer's other days were taken away by this test; the touched one is whole again.
      expect(wrong.filter(({ day }) => day === Date.UTC(2026, 2, 1) / 86_400_000)).to.deep.equal([]);
    });

    it('an event moves from month to month, also to one before 1970', async () => {
      await metering.send(events(0, 6));
      await metering.waitForPipeline();
      const moved = [
        ['2025-12-31T23:59:59.999999Z', '2025-12-31T00:00:00Z', '2026-01-01T00:00:00Z'],
        ['1969-12-31T23:00:00Z', '1969-12-01T00:00:00Z', '1970-01-01T00:00:00Z'],
        ['2026-03-31T12:00:00Z', '2026-03-31T00:00:00Z', '2026-04-01T00:00:00Z'],
      ] as const;
      for (const [timestamp, start, end] of moved) {
        await replaced(4, event(4, { timestamp }));
        await metering.waitForPipeline();
        const everywhere = ['1900-01-01T00:00:00Z', '2027-01-01T00:00:00Z'] as const;
        expect(await usage('m_sum', 'c0', [start, end])).to.equal('4');
        expect(await usage('m_sum', 'c0', everywhere)).to.equal('6');
        expect(await differences()).to.deep.equal([]);
      }
    });

    it('events of many months that are voided together are removed by one statement', async () => {
      const month = (i: number) => ({ timestamp: new Date(Date.UTC(2022, i, 15, 12)).toISOString() });
      const { partition_count } = metering.stores.log;
      const isOfFirst = (i: number) => toPartition(computeEventShard(SCOPE, idOf(i)), partition_count) === 0;
      const twelve = Array.from({ length: 100 }, (_, i) => i)
        .filter(isOfFirst)
        .slice(0, 12);
      await metering.send(
        twelve.map((i, index) => event(i, { ...month(index), external_customer_id: customer('c0') })),
      );
      await metering.waitForPipeline();
      await metering.pause();
      const [voids, others] = [twelve.slice(0, 6), twelve.slice(6)];
      for (const i of voids) await voided(i);
      await relayControlMessages(metering.stores, Date.now());
      const mutations = async () => {
        const [found] = await metering.rows<{ n: string }>(
          `select toString(count()) as n from system.mutations where database = currentDatabase() and table = 'usage_buckets'`,
        );
        return Number(found!.n);
      };
      const before = await mutations();
      await metering.resume();
      await metering.waitForPipeline();
      // One rebuild of the partition that holds them, and one statement for its six months.
      expect((await mutations()) - before).to.equal(1);
      const year = ['2022-01-01T00:00:00Z', '2023-01-01T00:00:00Z'] as const;
      expect(await usage('m_sum', 'c0', year)).to.equal(String(others.reduce((sum, i) => sum + i, 0)));
      expect(await differences()).to.deep.equal([]);
    });
  });
});
