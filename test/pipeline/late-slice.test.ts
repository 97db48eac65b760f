/** A slice that is tried again when the tables have forgotten its tokens. */
import { expect } from 'chai';
import { auditUsage } from '../../actions/audit-usage.ts';
import { type Metering, startMetering } from '../support/metering.ts';

const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;
const TABLES = ['events', 'event_identities', 'event_outcomes', 'usage_buckets'];

describe('a late slice', () => {
  let metering: Metering;
  beforeEach(async () => {
    metering = await startMetering({ partitions: 1 });
    await metering.announce('m', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.settled();
    await metering.send(events(0, 50));
    await metering.settled();
    await metering.send(events(20, 90));
    await metering.settled();
    await metering.pause();
    // Without memory of tokens: whatever is written twice is there twice.
    for (const table of TABLES)
      await command(`alter table ${table} modify setting non_replicated_deduplication_window = 0`);
  });
  afterEach(() => metering.stop());

  const events = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => ({
      event_id: `e${from + i}`,
      event_name: 'call',
      external_customer_id: `c${i % 3}`,
      timestamp: new Date(Date.UTC(2026, 2, 1 + (i % 4), i % 24)).toISOString(),
      properties: { n: from + i === 60 ? 'no number' : '1' },
    }));
  const command = (query: string) =>
    metering.stores.clickhouse.command({ query, clickhouse_settings: { mutations_sync: '2' } });
  /** The last slice is as a worker left it that was killed before it could say that it was done. */
  const forgetTheEnd = async (phase: string) => {
    await metering.stores.postgres.raw(
      `update slices set slice_from = next_offset - 1, slice_to = next_offset, next_offset = next_offset - 1, phase = ?,
              planned_at = now() - interval '1 hour', write_until = extract(epoch from now())::bigint`,
      [phase],
    );
  };
  const counts = async () => {
    const rows = await Promise.all(
      TABLES.slice(0, 3).map((table) => metering.rows<{ n: string }>(`select count() as n from ${table}`)),
    );
    return rows.map(([row]) => Number(row!.n));
  };
  const check = async () => {
    await metering.resume();
    await metering.settled();
    // 90 ids, 30 repeats, and the one whose value is no number.
    expect(await counts()).to.deep.equal([90, 90, 31]);
    const sums = await Promise.all(['c0', 'c1', 'c2'].map((customer) => metering.usage('m', customer, MARCH)));
    expect(sums.reduce((sum, value) => sum + Number(value), 0)).to.equal(89);
    const { rows, differences } = await auditUsage(metering.stores, {}, () => {});
    expect({ differences, some: rows > 0 }).to.deep.equal({ differences: 0, some: true });
  };

  it('that was written whole is not written again', async () => {
    await forgetTheEnd('buckets');
    await check();
  });

  it('that was written in part, and perhaps counted, is completed', async () => {
    await forgetTheEnd('buckets');
    for (const table of TABLES.slice(0, 3))
      await command(`alter table ${table} delete where event_id in ('e70', 'e71', 'e60')`);
    await command(`alter table event_outcomes delete where event_id in ('e25', 'e26')`);
    await command(`alter table usage_buckets delete where external_customer_id = 'c1'`);
    await check();
  });

  it('that never came to its bucket rows is counted once', async () => {
    await metering.send(events(90, 100));
    await metering.stores.postgres.raw(
      `update slices set slice_from = next_offset, slice_to = next_offset + 1, phase = 'raw',
              planned_at = now() - interval '1 hour', write_until = extract(epoch from now())::bigint + 1`,
    );
    await metering.resume();
    await metering.settled();
    expect(await counts()).to.deep.equal([100, 100, 31]);
    const { differences } = await auditUsage(metering.stores, {}, () => {});
    expect(differences).to.equal(0);
  });
});
