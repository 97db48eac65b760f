/** Dead letters are told on a topic of their own, with the bytes as they came, and can be replayed. */
import { expect } from 'chai';
import type { Consumer } from 'kafkajs';
import { createKafkaClient } from '../../storage/log/kafka/client.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { until } from '../support/until.ts';

const TOPIC = 'letters.of.the.test';

describe('the topic of the dead letters', function () {
  this.timeout(120_000);
  let kafka: TestKafka;
  let cluster: Cluster;
  let consumer: Consumer;
  const told: { key: string | null; body: string; headers: Record<string, string> }[] = [];

  before(async () => {
    kafka = await startKafka({ brokers: 1 });
    const settings = { KAFKA_DEAD_LETTER_TOPIC: TOPIC, KAFKA_DEAD_LETTER_RETENTION_HOURS: '5', SLICE_WAIT_MS: '20' };
    cluster = await startCluster({ kafka, partitions: 3, settings });
    consumer = createKafkaClient({ brokers: kafka.brokers.split(',') }).consumer({ groupId: 'who wants to know' });
    await consumer.connect();
    await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message: { key, value, headers } }) => {
        const texts = Object.entries(headers ?? {}).map(([name, header]) => [name, String(header)]);
        told.push({ key: key && key.toString(), body: value!.toString(), headers: Object.fromEntries(texts) });
      },
    });
  });
  after(async () => {
    await consumer?.disconnect();
    await cluster?.stop();
    await kafka?.wipe();
  });

  const post = <Path extends string>(path: Path, body: unknown) => cluster.request('POST', path, { body });
  const letters = async () => (await cluster.request('GET', '/events/dead-letters')).body.items;

  it('has the retention that was asked for', async () => {
    const admin = createKafkaClient({ brokers: kafka.brokers.split(',') }).admin();
    await admin.connect();
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: 2, name: TOPIC }],
    });
    await admin.disconnect();
    const settings = resources[0]!.configEntries.map(({ configName, configValue }) => `${configName}=${configValue}`);
    expect(settings).to.include('retention.ms=18000000');
  });

  it('tells of an event that cannot be read, byte by byte', async () => {
    const events = [
      {
        event_id: 'nameless',
        external_customer_id: 'äcmé 漢',
        timestamp: '2026-03-10T10:20:00Z',
        odd: [1, { a: null }],
      },
      { event_id: 'good', event_name: 'call', external_customer_id: 'acme' },
    ];
    expect((await post('/events/raw/bulk', { events })).status).to.equal(202);
    const letter = await until('it is told', async () => told.find(({ key }) => key === 'nameless'));
    expect(letter.body).to.equal(JSON.stringify(events[0]));
    const [row] = await until('it is a row', async () => {
      const rows = await letters();
      return rows.length > 0 && rows;
    });
    const { partition, offset, position, ...rest } = letter.headers;
    expect(`${partition}-${offset}-${position}`).to.equal(row!.id);
    expect(rest).to.include({ event_id: 'nameless', reason: 'event_name: is required' });
    expect(rest).to.include.all.keys('tenant_id', 'environment_id', 'received_at_us');
    expect(row!.body).to.equal(letter.body);
  });

  it('reports an event that the stores reject, which counts once it is replayed', async () => {
    const { clickhouse } = cluster.database;
    await clickhouse.command({ query: `alter table events add constraint refused check source != 'bad'` });
    const bad = { event_id: 'refused', event_name: 'call', external_customer_id: 'acme', source: 'bad' };
    const good = { event_id: 'beside it', event_name: 'call', external_customer_id: 'acme' };
    expect((await post('/events/bulk', { events: [bad, good] })).status).to.equal(202);
    const letter = await until('it is told', async () => told.find(({ key }) => key === 'refused'));
    expect(JSON.parse(letter.body)).to.deep.equal(bad);
    expect(letter.headers.reason).to.include('cannot be written');
    await cluster.waitForPipeline();
    await clickhouse.command({ query: 'alter table events drop constraint refused' });
    const { id } = (await letters()).find(({ event_id }) => event_id === 'refused')!;
    const answer = await post('/events/dead-letters/replay', { ids: [id] });
    expect(answer.body.verdicts[0]).to.include({ event_id: 'refused', verdict: 'replayed' });
    await cluster.waitForPipeline();
    const rows = await clickhouse.query({
      query: 'select event_id from events order by event_id',
      format: 'JSONEachRow',
    });
    const ids = (await rows.json<{ event_id: string }>()).map(({ event_id }) => event_id);
    expect(ids).to.deep.equal(['beside it', 'good', 'refused']);
  });
});
