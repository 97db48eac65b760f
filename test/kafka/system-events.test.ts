/** System events are told on a topic of their own: each after its commit, those of one record in order, none lost while Kafka is away. */
import { expect } from 'chai';
import type { Consumer } from 'kafkajs';
import { createKafkaClient } from '../../storage/log/kafka/client.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { until } from '../support/until.ts';

const TOPIC = 'told.of.the.test';

describe('the topic of the system events', function () {
  this.timeout(180_000);
  let kafka: TestKafka;
  let cluster: Cluster;
  let consumer: Consumer;
  type Payload = { customer: { name: string; external_id: string } };
  const told: { key: string; value: { id: string; entity_id: string; payload: Payload }; headers: object }[] = [];

  before(async () => {
    kafka = await startKafka({ brokers: 1 });
    const settings = { KAFKA_SYSTEM_EVENT_TOPIC: TOPIC };
    cluster = await startCluster({ kafka, partitions: 3, pipelines: 0, schedulers: 1, settings });
    consumer = createKafkaClient({ brokers: kafka.brokers.split(',') }).consumer({ groupId: 'who wants to know' });
    await consumer.connect();
    await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message: { key, value, headers } }) => {
        const texts = Object.entries(headers ?? {}).map(([name, header]) => [name, String(header)]);
        told.push({ key: String(key), value: JSON.parse(String(value)), headers: Object.fromEntries(texts) });
      },
    });
  });
  after(async () => {
    await consumer?.disconnect();
    await cluster?.stop();
    await kafka?.wipe();
  });

  const create = async (external_id: string) =>
    (await cluster.request('POST', '/customers', { body: { external_id } })).body.id;

  it('has every event, with what a consumer filters by, and those of one record in order', async () => {
    const ids = [await create('a'), await create('b'), await create('c')];
    const names = ['first', 'second', 'third'];
    for (const name of names)
      for (const id of ids) await cluster.request('PUT', `/customers/${id}`, { body: { name } });
    await until('all are told', async () => told.length >= 12);
    for (const id of ids) {
      const of = told.filter(({ key }) => key === id).map(({ value }) => value.payload.customer.name);
      expect(of.slice(1)).to.deep.equal(names);
    }
    const { value, headers } = told[0]!;
    const { id, entity_id } = value;
    expect(headers).to.deep.include({ id, event_name: 'customer.created', entity_type: 'customer', entity_id });
    expect(headers).to.include.all.keys('tenant_id', 'environment_id');
    expect(value).to.include.all.keys('event_name', 'user_id', 'timestamp', 'payload');
  });

  it('loses none while Kafka is away', async () => {
    await kafka.stop();
    const id = await create('meanwhile');
    const scheduler = cluster.process('scheduler', 0);
    await until('it could not be told', async () => scheduler.output().includes('stream-system-events'), 60_000);
    await kafka.restart();
    const late = await until('it is told', async () => told.find(({ key }) => key === id), 90_000);
    expect(late.value.payload.customer.external_id).to.equal('meanwhile');
  });
});
