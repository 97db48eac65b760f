import { expect } from 'chai';
import { register } from 'prom-client';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { type Fate, type StatementWay, statementsTo } from '../faults/statements.ts';
import { type Metering, startMetering } from '../support/metering.ts';
import { until } from '../support/until.ts';

const NAME = 'farthing_pipeline_identities';

describe('what the pipeline tells Prometheus', () => {
  let metering: Metering;
  before(async () => {
    metering = await startMetering({ partitions: 3 });
  });
  after(() => metering.stop());

  const partitions = async () => {
    const { values } = await register.getSingleMetric(NAME)!.get();
    return values.map(({ labels }) => labels.partition).sort();
  };
  const areAll = async () => (await partitions()).join() === '0,1,2';

  it('the ids of the partitions that it has, and of none that it has given away', async () => {
    await until('all are taken', areAll);
    await metering.pause();
    expect(await partitions()).to.deep.equal([]);
    await metering.resume();
    await until('all are taken again', areAll);
  });
});

describe('what the pipeline counts while a store fails', () => {
  let metering: Metering;
  let way: StatementWay;
  before(async () => {
    metering = await startMetering({
      partitions: 1,
      clickhouse: async (url) => {
        way = await statementsTo(url);
        return connectClickHouse(way.url);
      },
    });
  });
  after(async () => {
    await metering.stop();
    await way.close();
  });

  it('each event once, and every try that failed', async () => {
    await metering.announce('m', { event_name: 'call', aggregation: { type: 'COUNT' }, filters: [] });
    await metering.waitForPipeline();
    const [accepted, retries] = [await counted('farthing_pipeline_events_total', 'accepted'), await counted(RETRIES)];
    const fates: Fate[] = ['lost', 'lost', 'answer lost'];
    way.meet(({ kind }) => (kind === 'insert into events' ? fates.shift() : undefined));
    const by = { external_customer_id: 'acme', timestamp: '2026-03-01T12:00:00Z' };
    const events = Array.from({ length: 10 }, (_, n) => ({ event_id: `e${n}`, event_name: 'call', ...by }));
    await metering.send([...events, { event_id: 'other', event_name: 'none', ...by }, events[0]!]);
    await metering.waitForPipeline();
    expect(fates).to.deep.equal([]);
    expect(await counted('farthing_pipeline_events_total', 'accepted')).to.equal(accepted + 11);
    expect(await counted(RETRIES)).to.equal(retries + 3);
  });
});

const RETRIES = 'farthing_pipeline_slice_retries_total';

async function counted(name: string, outcome?: string): Promise<number> {
  const { values } = await register.getSingleMetric(name)!.get();
  return values.reduce((sum, { value, labels }) => sum + (labels.outcome === outcome ? value : 0), 0);
}
