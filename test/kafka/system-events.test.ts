/** System events are told on a topic of their own: each after its commit, those of one record in order, none lost while Kafka is away. */
import { expect } from 'chai';
import type { Consumer } from 'kafkajs';
import { streamEvents } from '../../actions/system-events/stream-events.ts';
import { kafkaClient } from '../../storage/log/kafka/client.ts';
import { type KafkaLog, openKafkaLog } from '../../storage/log/kafka/kafka.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { until } from '../support/until.ts';

describe('the topic of the system events', function () {
  this.timeout(120_000);
  let kafka: TestKafka;
  let log: KafkaLog;
  let api: TestApi;
  let consumer: Consumer;
  const told: { key: string; value: Record<string, unknown>; headers: Record<string, string> }[] = [];

  before(async () => {
    kafka = await startKafka({ brokers: 1 });
    const brokers = kafka.brokers.split(',');
    const topic = { topic_prefix: 'told', partition_count: 3, replication: 1, retention_hours: 5 };
    log = await openKafkaLog({ ...topic, brokers, append_timeout_ms: 2_000 });
    api = await startTestApi();
    consumer = kafkaClient({ brokers }).consumer({ groupId: 'who wants to know' });
    await consumer.connect();
    await consumer.subscribe({ topic: 'told.system-events', fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message: { key, value, headers } }) => {
        const texts = Object.entries(headers ?? {}).map(([name, header]) => [name, String(header)]);
        told.push({ key: String(key), value: JSON.parse(String(value)), headers: Object.fromEntries(texts) });
      },
    });
  });
  after(async () => {
    await consumer?.disconnect();
    await log?.close();
    await api?.stop();
    await kafka?.wipe();
  });

  const stream = () => streamEvents({ postgres: api.services.postgres, log }, api.services.clock());

  it('has every event once, with what a consumer filters by, and those of one record in order', async () => {
    const ids: string[] = [];
    for (const external_id of ['a', 'b', 'c'])
      ids.push((await api.request('POST', '/customers', { body: { external_id } })).body.id);
    for (const name of ['first', 'second', 'third'])
      for (const id of ids) await api.request('PUT', `/customers/${id}`, { body: { name } });
    expect(await stream()).to.equal(12);
    expect(await stream()).to.equal(0);
    await until('all are told', async () => told.length === 12);
    for (const id of ids) {
      const names = told.filter(({ key }) => key === id).map(({ value }) => value.payload);
      expect(names.map((payload) => (payload as { customer: { name: string } }).customer.name).slice(1)).to.deep.equal([
        'first',
        'second',
        'third',
      ]);
    }
    const { value, headers } = told[0]!;
    expect(headers).to.deep.equal({
      id: value.id,
      event_name: 'customer.created',
      entity_type: 'customer',
      entity_id: value.entity_id,
      ...api.scope,
    });
    expect(value).to.include.all.keys('id', 'event_name', 'user_id', 'timestamp', 'payload');
  });

  it('loses none while Kafka is away', async () => {
    await kafka.stop();
    await api.request('POST', '/customers', { body: { external_id: 'meanwhile' } });
    let failure: unknown;
    await stream().catch((error: unknown) => (failure = error));
    expect((failure as Error).message).to.include('not available');
    await kafka.restart();
    await until('it is told', async () => (await stream().catch(() => 0)) === 1);
    await until('it has come', async () => told.length >= 13);
    expect(told.at(-1)!.value.payload).to.have.nested.property('customer.external_id', 'meanwhile');
  });
});
