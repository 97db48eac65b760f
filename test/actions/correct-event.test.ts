import { expect } from 'chai';
import { auditUsage, type Difference } from '../../actions/audit-usage.ts';
import { requestCorrection } from '../../actions/request-correction.ts';
import { partitionOfShard } from '../../core/event/identity.ts';
import { shardOfEvent } from '../../storage/corrections.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';
import { until } from '../support/until.ts';

const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;
const METERS = {
  m_sum: { type: 'SUM', field: 'n' },
  m_unique: { type: 'COUNT_UNIQUE', field: 'host' },
  m_latest: { type: 'LATEST', field: 'n' },
  m_max: { type: 'MAX', field: 'n', bucket_size: 'MINUTE', group_by: 'host' },
} as const;

describe('corrections meet the usage rows', () => {
  let metering: Metering;
  beforeEach(async () => {
    metering = await startMetering();
    for (const [id, aggregation] of Object.entries(METERS))
      await metering.announce(id, { event_name: 'call', filters: [{ key: 'on', values: ['yes'] }], aggregation });
    await metering.settled();
  });
  afterEach(() => metering.stop());

  const event = (i: number, fields = {}) => ({
    event_id: `e${i}`,
    event_name: 'call',
    external_customer_id: `c${i % 2}`,
    timestamp: new Date(Date.UTC(2026, 2, 1 + (i % 2), 10, i % 60)).toISOString(),
    properties: { n: String(i), host: `h${i % 10}`, on: 'yes' },
    ...fields,
  });
  const events = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => event(from + i));
  const asked = { reason: 'test', user_id: 'user_1', now: new Date() };
  const voided = (i: number) =>
    requestCorrection(metering.stores, SCOPE, { ...asked, event_id: `e${i}`, action: 'void', replacement: null });
  const replaced = (i: number, by: object) =>
    requestCorrection(metering.stores, SCOPE, {
      ...asked,
      event_id: `e${i}`,
      action: 'replace',
      replacement: JSON.stringify(by),
    });
  const differences = async () => {
    const found: Difference[] = [];
    await auditUsage(metering.stores, {}, (difference) => found.push(difference));
    return found;
  };
  const all = (meter: string, customer = 'c0') => metering.usage(meter, customer, MARCH);

  it('every type of aggregation gives back what was voided and takes in what replaced it', async () => {
    await metering.send(events(0, 40));
    await metering.settled();
    expect([await all('m_sum'), await all('m_unique'), await all('m_latest')]).to.deep.equal(['380', '5', '38']);
    await voided(38);
    for (const i of [8, 18, 28]) await voided(i);
    await replaced(0, event(0, { properties: { n: '0.5', host: 'h0', on: 'no' } }));
    await replaced(2, event(2, { external_customer_id: 'c1', timestamp: '2026-03-20T00:00:00Z' }));
    await metering.settled();
    // 380 without 38 + 8 + 18 + 28 + 0 + 2; the host h8 is gone; the newest of the first day is e36.
    expect([await all('m_sum'), await all('m_unique'), await all('m_latest')]).to.deep.equal(['286', '4', '36']);
    expect(await all('m_latest', 'c1')).to.equal('2');
    expect(await all('m_max')).to.equal(String(286));
    expect(await differences()).to.deep.equal([]);
  });

  it('an event moves from month to month, also to one before 1970', async () => {
    await metering.send(events(0, 6));
    await metering.settled();
    const moved = [
      ['2025-12-31T23:59:59.999999Z', '2025-12-31T00:00:00Z', '2026-01-01T00:00:00Z'],
      ['1969-12-31T23:00:00Z', '1969-12-01T00:00:00Z', '1970-01-01T00:00:00Z'],
      ['2026-03-31T12:00:00Z', '2026-03-31T00:00:00Z', '2026-04-01T00:00:00Z'],
    ] as const;
    for (const [timestamp, start, end] of moved) {
      await replaced(4, event(4, { timestamp }));
      await metering.settled();
      const everywhere = ['1900-01-01T00:00:00Z', '2027-01-01T00:00:00Z'] as const;
      expect(await metering.usage('m_sum', 'c0', [start, end])).to.equal('4');
      expect(await metering.usage('m_sum', 'c0', everywhere)).to.equal('6');
      expect(await differences()).to.deep.equal([]);
    }
  });

  it('while events flow in, and a meter that comes on the way counts them as corrected', async () => {
    await metering.send(events(0, 60));
    await metering.settled();
    const flood = (async () => {
      for (let from = 60; from < 360; from += 20) await metering.send(events(from, from + 20));
    })();
    for (let i = 0; i < 6; i += 2) await voided(i);
    await metering.announce('m_late', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    for (let i = 6; i < 12; i += 2) await replaced(i, event(i, { properties: { n: '1000', host: 'x', on: 'yes' } }));
    await metering.announce('m_sum', { event_name: 'call', filters: [], aggregation: METERS.m_sum });
    for (let i = 12; i < 16; i += 2) await voided(i);
    await flood;
    await metering.settled();
    // The even numbers below 360 are 32,220; the first eight of them are 56, and three of these are 1000 now.
    for (const meter of ['m_sum', 'm_late']) expect(await all(meter)).to.equal(String(32_220 - 56 + 3000));
    expect(await differences()).to.deep.equal([]);
  });

  it('a rebuild that was broken off half-way is done again by the next owner, after what it may still write', async () => {
    await metering.send(events(0, 20));
    await metering.settled();
    await metering.pause();
    await voided(4);
    const { postgres, clickhouse, log } = metering.stores;
    const partition = partitionOfShard(shardOfEvent(SCOPE, 'e4'), log.partition_count);
    // As a worker leaves it that dies between the delete and the insert.
    const { rows } = await postgres.raw(`select next_offset from slices where partition = ?`, [partition]);
    const until_s = Math.ceil(Date.now() / 1000) + 2;
    await postgres.raw(`update slices set gate = ?`, [`partition:${partition}`]);
    await postgres.raw(
      `update slices set gate_until = ?, slice_from = ?, slice_to = ?, phase = 'raw' where partition = ?`,
      [until_s, rows[0].next_offset, String(BigInt(rows[0].next_offset) + 1n), partition],
    );
    await clickhouse.command({
      query: `alter table usage_buckets delete where external_customer_id = 'c0'`,
      clickhouse_settings: { mutations_sync: '2' },
    });
    // What others read meanwhile comes from the raw events.
    expect(await all('m_sum')).to.equal('90');
    await metering.resume();
    await metering.settled();
    expect(Date.now() / 1000).to.be.greaterThan(until_s - 1);
    expect(await all('m_sum')).to.equal('86');
    const gate = await postgres.raw(`select count(*)::int as closed from slices where gate is not null`);
    expect(gate.rows[0].closed).to.equal(0);
    const wrong = await differences();
    // The customer's other days were taken away by this test; the touched one is whole again.
    expect(wrong.filter(({ day }) => day === Date.UTC(2026, 2, 1) / 86_400_000)).to.deep.equal([]);
  });

  it('a message that comes twice, and one for an id that never came, change nothing', async () => {
    await metering.send(events(0, 4));
    await metering.settled();
    const correction = await voided(2);
    await metering.settled();
    await metering.stores.postgres.raw(
      `insert into log_outbox (tenant_id, environment_id, body, shard) values (?, ?, ?::jsonb, ?)`,
      [
        SCOPE.tenant_id,
        SCOPE.environment_id,
        JSON.stringify({ type: 'correction', correction_id: correction.id }),
        shardOfEvent(SCOPE, 'e2'),
      ],
    );
    await metering.settled();
    expect(await all('m_sum')).to.equal('0');
    const refusal = await requestCorrection(metering.stores, SCOPE, {
      ...asked,
      event_id: 'never',
      action: 'void',
      replacement: null,
    }).catch((error) => error);
    expect(refusal.code).to.equal('not_found');
    await until(
      'the gate is open',
      async () => (await metering.stores.postgres.raw(`select 1 from slices where gate is not null`)).rows.length === 0,
    );
  });
});
