/** A slice that is tried again: what is there of it is looked up, and the rest is written. No memory of the engine helps. */
import { expect } from 'chai';
import { requestCorrection } from '../../actions/metering/events/request-correction.ts';
import { auditUsage } from '../../actions/operations/audit/usage.ts';
import { Partition } from '../../pipeline/slices/partition.ts';
import { planSlice } from '../../storage/progress/slices.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';

const SPRING = ['2026-03-01T00:00:00Z', '2026-05-01T00:00:00Z'] as const;
const RAW = ['events', 'event_identities', 'event_outcomes'];

type Progress = { slices: Record<string, unknown>[]; ledger: Record<string, unknown>[] };

describe('a slice that is tried again', () => {
  let metering: Metering;
  let before: Progress;
  beforeEach(async () => {
    metering = await startMetering({ partitions: 1 });
    await metering.announce('m', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.waitForPipeline();
    await metering.send(events(0, 50));
    await metering.waitForPipeline();
    before = await progress();
    await metering.send(events(20, 90));
    await metering.waitForPipeline();
    await metering.pause();
    for (const table of [...RAW, 'usage_buckets'])
      await command(`alter table ${table} modify setting non_replicated_deduplication_window = 0`);
  });
  afterEach(() => metering.stop());

  /** Of March; from the fiftieth on of two months. */
  const events = (from: number, to: number) =>
    Array.from({ length: to - from }, (_none, index) => {
      const i = from + index;
      return {
        event_id: `e${i}`,
        event_name: 'call',
        external_customer_id: `c${i % 3}`,
        timestamp: new Date(Date.UTC(2026, 2, 30 + (i % (i < 50 ? 2 : 4)), i % 24)).toISOString(),
        properties: { n: i === 60 ? 'no number' : '1' },
      };
    });
  const command = (query: string) =>
    metering.stores.clickhouse.command({ query, clickhouse_settings: { mutations_sync: '2' } });
  const sql = async (text: string, values: unknown[] = []) =>
    (await metering.stores.postgres.raw(text, values as string[])).rows as Record<string, unknown>[];
  const progress = async (): Promise<Progress> => ({
    slices: await sql('select * from slices'),
    ledger: await sql('select * from slice_ledger'),
  });
  /** As a worker left the last slice that was killed before it could say that it was done. */
  const forgetTheEnd = async (phase: 'raw' | 'buckets') => {
    const [then] = before.slices;
    await sql(
      `update slices set slice_from = ?, slice_to = next_offset, next_offset = ?, phase = ?, last_record = ?, rows_since = ?`,
      [then!.next_offset, then!.next_offset, phase, then!.last_record, phase === 'buckets' ? (await marks())[0] : null],
    );
    await sql(`delete from slice_ledger`);
    for (const { partition, from_offset, ...row } of before.ledger)
      await sql(
        `insert into slice_ledger (partition, from_offset, ${Object.keys(row).join(', ')}) values (?, ?, ${Object.keys(row).map(() => '?')})`,
        [partition, from_offset, ...Object.values(row)],
      );
  };
  const marks = async () => {
    const rows = await metering.rows<{ attempt: string }>(
      `select toString(max(attempt)) as attempt from usage_buckets where size = 'MARK' and group_key = 'partition:0' group by bucket_start`,
    );
    return rows.map(({ attempt }) => attempt);
  };
  const counts = async () => {
    const rows = await Promise.all(
      RAW.map((table) => metering.rows<{ n: string }>(`select count() as n from ${table}`)),
    );
    return rows.map(([row]) => Number(row!.n));
  };
  const check = async ({ ids = 90, counted = 89 } = {}) => {
    await metering.resume();
    await metering.waitForPipeline();
    // 30 repeats, and the one whose value is no number.
    expect(await counts()).to.deep.equal([ids, ids, 31]);
    const sums = await Promise.all(['c0', 'c1', 'c2'].map((customer) => metering.usage('m', customer, SPRING)));
    expect(sums.reduce((sum, value) => sum + Number(value), 0)).to.equal(counted);
    const { rows, differences } = await auditUsage(metering.stores, {}, () => {});
    expect({ differences, some: rows > 0 }).to.deep.equal({ differences: 0, some: true });
    const [ledger] = await sql(
      `select sum(stored)::int as stored, sum(duplicates)::int as duplicates, sum(records)::int as records, max(to_offset)::int as until from slice_ledger`,
    );
    expect(ledger).to.deep.equal({ stored: ids, duplicates: 30, records: ledger!.until, until: ledger!.until });
  };

  it('and was written whole is not written again', async () => {
    await forgetTheEnd('buckets');
    await check();
  });

  it('and of whose bucket rows one month arrived gets the other', async () => {
    await forgetTheEnd('buckets');
    for (const table of RAW.slice(0, 2))
      await command(`alter table ${table} delete where event_id in ('e70', 'e71', 'e60')`);
    await command(`alter table event_outcomes delete where event_id in ('e25', 'e26', 'e60')`);
    await command(`alter table usage_buckets delete where toDate(bucket_start) >= '2026-04-01'`);
    await check();
  });

  it('and never came to its bucket rows is counted once', async () => {
    await metering.send(events(90, 100));
    await sql(`update slices set slice_from = next_offset, slice_to = next_offset + 1, phase = 'raw'`);
    await check({ ids: 100, counted: 99 });
  });

  it('whose worker wakes up late writes nothing', async () => {
    const { stores } = metering;
    const [{ epoch, next_offset }] = (await sql('select epoch, next_offset from slices')) as [
      { epoch: string; next_offset: string },
    ];
    await metering.resume();
    await metering.send(events(90, 100));
    await metering.waitForPipeline();
    const late = { partition: 0, epoch: BigInt(epoch) };
    const error = await planSlice(stores.postgres, late, {
      from: BigInt(next_offset),
      to: BigInt(next_offset) + 1n,
    }).catch((thrown: Error) => thrown);
    expect(error).to.have.property('name', 'FencedError');
  });

  it('is refused where it would leave a gap', async () => {
    const [state] = (await sql('select epoch, next_offset from slices')) as [{ epoch: string; next_offset: string }];
    const from = BigInt(state.next_offset) + 1n;
    const error = await planSlice(
      metering.stores.postgres,
      { partition: 0, epoch: BigInt(state.epoch) },
      { from, to: from + 1n },
    ).catch((thrown: Error) => thrown);
    expect(String(error)).to.match(/where the stores end at/);
  });

  it('is not taken at all from stores of different moments', async () => {
    await forgetTheEnd('raw');
    // A Postgres that was put back to an earlier state does not know of a slice in progress.
    await sql(`update slices set slice_from = null, slice_to = null, phase = 'idle'`);
    const error = await Partition.take(metering.stores, 0, { owner: 'test' }).catch((thrown: Error) => thrown);
    expect(String(error)).to.match(/of different moments/);
  });

  it('by a Postgres that was put back takes numbers behind those that ClickHouse has seen', async () => {
    const [last] = (await sql('select last_value::int as n from write_attempts')) as [{ n: number }];
    await sql(`select setval('write_attempts', 1)`);
    await metering.send(events(90, 100));
    await check({ ids: 100, counted: 99 });
    // A rebuild takes away what has smaller numbers, and leaves what it writes.
    const asked = { reason: 'test', user_id: 'user_1', now: new Date(), replacement: null };
    await requestCorrection(metering.stores, SCOPE, { ...asked, event_id: 'e3', action: 'void' });
    await check({ ids: 100, counted: 98 });
    const [now] = (await sql('select last_value::int as n from write_attempts')) as [{ n: number }];
    expect(now.n).to.be.greaterThan(last.n);
  });
});
