/** A partition in the hands of a worker, without the loop around it: what it does twice, and when it is not its own any more. */
import { expect } from 'chai';
import { Partition } from '../../../pipeline/slices/partition.ts';
import type { LogRecord } from '../../../storage/log/log.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';

describe('a partition in the hands of a worker', () => {
  let metering: Metering;
  beforeEach(async () => {
    metering = await startMetering({ partitions: 1 });
    await metering.announce('m', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.waitForPipeline();
    await metering.pause();
  });
  afterEach(() => metering.stop());

  const sql = async (text: string) => (await metering.stores.postgres.raw(text)).rows as Record<string, unknown>[];
  const count = async (table: string) =>
    (await metering.rows<{ n: string }>(`select count() as n from ${table}`))[0]!.n;
  const refuse = (table: string, condition: string) =>
    metering.stores.clickhouse.command({ query: `alter table ${table} add constraint refused check ${condition}` });

  /** One record at this offset. */
  function recordAt(offset: bigint, sources: readonly string[]): LogRecord {
    const events = sources.map((source, index) => ({
      event_id: `e${offset}.${index}`,
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: '2026-03-10T10:20:00Z',
      source,
      properties: { n: '1' },
    }));
    return {
      ...SCOPE,
      partition: 0,
      kind: 'events',
      offset,
      received_at_us: Date.parse('2026-03-10T11:00:00Z') * 1000,
      generated_ids: null,
      event_count: events.length,
      body: Buffer.from(JSON.stringify(events)),
    };
  }

  it('that has not heard that its slice is finished finishes it once', async () => {
    const partition = await Partition.take(metering.stores, 0, { owner: 'test' });
    const record = recordAt(partition.next_offset, ['good', 'good', 'good']);
    const slice = await partition.prepare([record]);
    await partition.write(slice);
    const after = await sql(`select next_offset, slice_from, phase from slices`);
    // The answer to the last statement got lost, so the loop writes the slice once more.
    await partition.write(slice);
    expect(await sql(`select next_offset, slice_from, phase from slices`)).to.deep.equal(after);
    expect(partition.next_offset).to.equal(record.offset + 1n);
    for (const table of ['events', 'event_identities']) expect(await count(table)).to.equal('3');
    expect(await metering.usage('m', 'acme', ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'])).to.equal('3');
    expect(await sql(`select sum(stored)::int as stored from slice_ledger`)).to.deep.equal([{ stored: 3 }]);
    partition.close();
  });

  it('that was taken from it sets nothing aside', async () => {
    const frozen = await Partition.take(metering.stores, 0, { owner: 'frozen' });
    const record = recordAt(frozen.next_offset, ['good', 'bad', 'good']);
    await refuse('events', `source != 'bad'`);
    const slice = await frozen.prepare([record]);
    expect(String(await frozen.write(slice).catch((error) => error))).to.include('refused');
    const next = await Partition.take(metering.stores, 0, { owner: 'next' });
    expect(await frozen.rejectFaultyEvents([record]).catch((error) => error)).to.have.property('name', 'FencedError');
    expect(await sql(`select * from poison_events`)).to.deep.equal([]);
    expect(await sql(`select * from event_corrections`)).to.deep.equal([]);
    expect(await next.rejectFaultyEvents([record])).to.equal(true);
    expect(await sql(`select position from poison_events`)).to.deep.equal([{ position: 1 }]);
    frozen.close();
    next.close();
  });
});
