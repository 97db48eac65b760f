import { expect } from 'chai';
import {
  auditSample,
  auditUsage,
  isRepaired,
  repairUsage,
  type UsageDifference,
} from '../../../../actions/operations/audit/usage.ts';
import { type Metering, SCOPE, startMetering } from '../../../support/metering.ts';
import { until } from '../../../support/until.ts';

const MARCH = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;

describe('audit of the bucket rows', () => {
  let metering: Metering;
  before(async () => {
    metering = await startMetering();
    const meters = {
      m_sum: { type: 'SUM', field: 'tokens' },
      m_unique: { type: 'COUNT_UNIQUE', field: 'host' },
      m_latest: { type: 'LATEST', field: 'tokens' },
      m_weighted: { type: 'WEIGHTED_SUM', field: 'tokens' },
      m_max: { type: 'MAX', field: 'tokens', bucket_size: 'MINUTE', group_by: 'host' },
    } as const;
    for (const [id, aggregation] of Object.entries(meters))
      await metering.announce(id, { event_name: 'call', filters: [], aggregation });
    await metering.send(events('a', 300));
    await metering.waitForPipeline();
    await metering.requestDailyRollups('2026-04-01T00:00:00Z');
    await metering.waitForPipeline();
  });
  after(() => metering.stop());

  const events = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, i) => ({
      event_id: `${prefix}${i}`,
      event_name: 'call',
      external_customer_id: `c${i % 5}`,
      timestamp: new Date(Date.UTC(2026, 2, 1 + (i % 3), i % 24, i % 60)).toISOString(),
      properties: { tokens: `${i % 7}.${i}`, host: `h${i % 4}` },
    }));
  /** Batches one after the other, beside what the test does. */
  const flood = async (name: string) => {
    for (let round = 0; round < 40; round++) await metering.send(events(`${name}${round}-`, 20));
  };
  const audit = async (wanted = {}) => {
    const differences: UsageDifference[] = [];
    const report = await auditUsage(metering.stores, wanted, (difference) => differences.push(difference));
    return { report, differences };
  };
  const change = (query: string) =>
    metering.stores.clickhouse.command({ query, clickhouse_settings: { mutations_sync: '2' } });

  it('finds nothing where nothing is wrong', async () => {
    const { report, differences } = await audit();
    expect(differences).to.deep.equal([]);
    expect(report).to.deep.include({ meters: 5, days: 15, differences: 0 });
    expect(report.rows).to.be.greaterThan(300);
  });

  it('raises no false alarm while slices are being written', async () => {
    const sent = flood('flood');
    expect((await audit({ meter_id: 'm_sum' })).differences).to.deep.equal([]);
    expect((await audit({ meter_id: 'm_unique' })).differences).to.deep.equal([]);
    await sent;
    await metering.waitForPipeline();
    expect((await audit()).differences).to.deep.equal([]);
  });

  it('tells a row that says wrongly when its events happened: a question about a part of the hour would trust it', async () => {
    const some = `meter_id = 'm_sum' and external_customer_id = 'c1' and size != 'DAY'`;
    await change(`alter table usage_buckets update last_us = last_us - 1000000 where ${some}`);
    const { differences } = await audit({ meter_id: 'm_sum' });
    expect(differences.length).to.be.greaterThan(0);
    for (const { field, external_customer_id } of differences)
      expect([field, external_customer_id]).to.deep.equal(['last_us', 'c1']);
    await change(`alter table usage_buckets update last_us = last_us + 1000000 where ${some}`);
  });

  it('tells a missing row, a wrong sum and a wrong set, and a repair mends exactly them', async () => {
    const truth = await metering.usage('m_sum', 'c1', MARCH);
    await change(
      `alter table usage_buckets delete where meter_id = 'm_sum' and size = 'DAY' and external_customer_id = 'c1' and toDate(bucket_start) = '2026-03-02'`,
    );
    await change(
      `alter table usage_buckets delete where meter_id = 'm_unique' and size = 'HOUR' and external_customer_id = 'c2' and toDate(bucket_start) = '2026-03-01'`,
    );
    await change(`insert into usage_buckets (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start, group_key, event_count, sum)
                  values ('${SCOPE.tenant_id}', '${SCOPE.environment_id}', 'm_sum', 1, 'DAY', 'nobody', '2026-02-01 00:00:00', '', 3, 9)`);
    await change(`insert into usage_buckets (tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, bucket_start, group_key, latest, unique_values)
                  select '${SCOPE.tenant_id}', '${SCOPE.environment_id}', 'm_unique', 1, 'DAY', 'c3', '2026-03-03 00:00:00', '', (toInt64(-9223372036854775808), '', toDecimal256(0, 24)), ['never seen']`);
    const { differences } = await audit();
    const seen = [
      ...new Set(
        differences.map(({ meter_id, external_customer_id, field }) => `${meter_id} ${external_customer_id} ${field}`),
      ),
    ];
    expect(seen.sort()).to.deep.equal(['m_sum c1 row', 'm_sum nobody row', 'm_unique c2 row', 'm_unique c3 uniques']);
    expect(await metering.usage('m_sum', 'c1', MARCH)).to.not.equal(truth);

    const ids = await repairUsage(metering.stores, differences);
    await until('the rows are repaired', () => isRepaired(metering.stores, ids));
    expect((await audit()).differences).to.deep.equal([]);
    expect(await metering.usage('m_sum', 'c1', MARCH)).to.equal(truth);
  });

  it('repairs while events flow in, and loses and doubles none of them', async () => {
    await change(
      `alter table usage_buckets update event_count = event_count + 1 where meter_id = 'm_latest' and external_customer_id = 'c4'`,
    );
    const { differences } = await audit({ meter_id: 'm_latest' });
    expect(new Set(differences.map(({ field }) => field))).to.deep.equal(new Set(['count']));
    const sent = flood('during');
    const ids = await repairUsage(metering.stores, differences);
    await until('the rows are repaired', () => isRepaired(metering.stores, ids));
    await sent;
    await metering.waitForPipeline();
    expect((await audit()).differences).to.deep.equal([]);
  });

  it('looks only at what it is asked for', async () => {
    const range = { start_us: Date.UTC(2026, 2, 2) * 1000, end_us: Date.UTC(2026, 2, 3) * 1000 };
    expect((await audit({ meter_id: 'm_max', ...range })).report).to.deep.include({ meters: 1, days: 1 });
    expect((await audit({ tenant_id: 'another' })).report).to.deep.include({ meters: 0, days: 0 });
  });

  it('samples days of meters', async () => {
    const report = await auditSample(metering.stores, { size: 3, chance: () => 0.5 }, () => {});
    expect(report).to.deep.include({ meters: 3, days: 3, differences: 0 });
  });
});
