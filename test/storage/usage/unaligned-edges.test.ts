/**
 * A range that ends inside of an hour: the rows of that hour answer as long as none of their events lies behind the end, and
 * raw events where one does. Either way the answer is exact.
 */
import { expect } from 'chai';
import { connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { type StatementWay, statementsTo } from '../../faults/statements.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';
import { until } from '../../support/until.ts';

describe('usage of a range with ragged ends', () => {
  let metering: Metering;
  let way: StatementWay;
  let rawReads = 0;

  before(async () => {
    metering = await startMetering({
      clickhouse: async (url) => {
        way = await statementsTo(url);
        return connectClickHouse(way.url);
      },
    });
    const types = { m_sum: 'SUM', m_avg: 'AVG', m_unique: 'COUNT_UNIQUE', m_latest: 'LATEST' } as const;
    for (const [id, type] of Object.entries(types))
      await metering.announce(id, { event_name: 'call', filters: [], aggregation: { type, field: 'n' } });
    await metering.announce('m_count', { event_name: 'call', filters: [], aggregation: { type: 'COUNT' } });
    await metering.send([at('e1', '10:05:00', 1), at('e2', '11:10:00', 2), at('e3', '11:30:00', 3)]);
    await metering.waitForPipeline();
  });
  after(async () => {
    await metering.stop();
    await way.close();
  });

  const at = (event_id: string, time: string, n: number, customer = 'acme') => ({
    event_id,
    event_name: 'call',
    external_customer_id: customer,
    timestamp: `2026-03-10T${time}Z`,
    properties: { n },
  });
  /** The answers, and whether raw events were read for them. */
  const ask = async (from: string, to: string) => {
    rawReads = 0;
    way.meet(({ text }) => {
      if (/select external_customer_id, event_id, /i.test(text)) rawReads++;
      return undefined;
    });
    const range = [`2026-03-10T${from}Z`, `2026-03-10T${to}Z`] as const;
    const values: string[] = [];
    for (const meter of ['m_sum', 'm_unique', 'm_latest']) values.push(await metering.usage(meter, 'acme', range));
    way.meet(undefined);
    return `${values.join(' ')}${rawReads > 0 ? ', raw' : ''}`;
  };

  it('needs no raw events when the rows hold nothing beyond it', async () => {
    expect(await ask('10:00:00', '11:45:00')).to.equal('6 3 3');
    expect(await ask('10:05:00', '11:30:00.001')).to.equal('6 3 3');
    expect(await ask('11:05:00', '11:45:00')).to.equal('5 2 3');
    expect(await ask('12:10:00', '12:20:00')).to.equal('0 0 0');
  });

  it('reads raw events when an event lies before its start or at its end', async () => {
    expect(await ask('10:00:00', '11:30:00')).to.equal('3 2 2, raw');
    expect(await ask('10:05:00.001', '11:45:00')).to.equal('5 2 3, raw');
  });

  it('sees a later event, also of another slice, and asks nobody else’s', async () => {
    await metering.send([at('e4', '11:50:00', 4), at('e5', '11:59:59', 5, 'other')]);
    await metering.waitForPipeline();
    expect(await ask('10:00:00', '11:45:00')).to.equal('6 3 3, raw');
    expect(await ask('10:00:00', '11:55:00')).to.equal('10 4 4');
  });

  it('asks once for all who ask until now what has arrived since', async () => {
    rawReads = 0;
    way.meet(({ text }) => {
      if (/select external_customer_id, event_id, /i.test(text)) rawReads++;
      return undefined;
    });
    const end = '2026-03-10T11:45:00Z';
    const now_ms = Date.parse(end) + 500;
    const range = { start_us: Date.parse('2026-03-10T10:00:00Z') * 1000, end_us: Date.parse(end) * 1000 };
    const reports = await Promise.all(
      ['m_sum', 'm_count', 'm_avg'].flatMap((id) =>
        ['acme', 'other'].map((customer) =>
          readUsageReport(metering.stores, SCOPE, {
            meter: { id },
            external_customer_ids: [customer],
            ...range,
            now_ms,
          }),
        ),
      ),
    );
    way.meet(undefined);
    expect(reports.map(({ usage }) => usage[0]!.total.value.toString())).to.deep.equal(['6', '0', '3', '0', '2', '0']);
    expect(rawReads).to.equal(1);
  });

  it('takes away only what the rows hold: not what is stored, and is not in them yet', async () => {
    way.meet(({ kind }) => (kind === 'insert into event_identities' ? 'held' : undefined));
    await metering.send([at('e6', '11:56:00', 7)]);
    const stored = `select count() as n from events where event_id = 'e6'`;
    await until(
      'the event is stored',
      async () => way.waiting > 0 && (await metering.rows<{ n: string }>(stored))[0]!.n === '1',
    );
    const end = Date.parse('2026-03-10T11:45:00Z');
    const report = await readUsageReport(metering.stores, SCOPE, {
      meter: { id: 'm_sum' },
      external_customer_ids: ['acme'],
      start_us: Date.parse('2026-03-10T10:00:00Z') * 1000,
      end_us: end * 1000,
      now_ms: end + 500,
    });
    expect(report.usage[0]!.total.value.toString()).to.equal('6');
    way.meet(undefined);
    await way.release();
    await metering.waitForPipeline();
    expect(await ask('10:00:00', '11:57:00')).to.equal('17 5 7');
  });

  it('trusts no row that does not say when its events happened', async () => {
    const { clickhouse } = metering.stores;
    await clickhouse.command({
      query: `alter table usage_buckets update last_us = 9000000000000000000 where meter_id = 'm_sum'`,
      clickhouse_settings: { mutations_sync: '2' },
    });
    expect(await ask('10:00:00', '11:57:00')).to.equal('17 5 7, raw');
  });
});
