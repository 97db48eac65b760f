/** `npm run audit` on Kafka: the log is asked where it begins and ends, and nothing is made for it. */
import { expect } from 'chai';
import { createKafkaClient } from '../../storage/log/kafka/client.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';

describe('the audit on Kafka', function () {
  this.timeout(180_000);
  let kafka: TestKafka;
  let cluster: Cluster;
  before(async () => {
    kafka = await startKafka({ brokers: 1 });
    cluster = await startCluster({ kafka, partitions: 2, settings: { SLICE_WAIT_MS: '20' } });
  });
  after(async () => {
    await cluster?.stop();
    await kafka?.wipe();
  });

  const ingest = async (prefix: string, count: number) => {
    const events = Array.from({ length: count }, (_, n) => ({
      event_id: `${prefix}${n}`,
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: '2026-03-10T10:20:00Z',
      properties: {},
    }));
    expect((await cluster.request('POST', '/events/bulk', { body: { events } })).status).to.equal(202);
  };
  const audit = () => cluster.run('commands/audit.ts').ended;

  it('ends with 0 where the log holds what the stores do not, also while records wait', async () => {
    for (let batch = 0; batch < 5; batch++) await ingest(`a${batch}-`, 20);
    await ingest('a0-', 20);
    await cluster.waitForPipeline();
    const { code, output } = await audit();
    expect(code, output).to.equal(0);
    expect(output).to.include('log: 2 partitions: 0 differences');
    expect(output).to.match(/outcomes: \d ranges, 20 rows: 0 differences/);
    await cluster.process('pipeline', 0).kill('SIGTERM');
    for (let batch = 0; batch < 5; batch++) await ingest(`b${batch}-`, 20);
    expect((await audit()).code).to.equal(0);
  });

  it('ends with 1 where the log begins behind what the stores hold', async () => {
    const admin = createKafkaClient({ brokers: kafka.brokers.split(',') }).admin();
    await admin.connect();
    const topic = (await admin.listTopics()).find((name) => /^cluster.*\.events$/.test(name))!;
    const { rows } = await cluster.database.postgres.raw(`select next_offset from slices where partition = 1`);
    const low = BigInt(rows[0].next_offset) + 3n;
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 1, offset: String(low) }] });
    await admin.disconnect();
    const { code, output } = await audit();
    expect(output).to.include(
      `log_records_missing partition 1 offsets ${rows[0].next_offset} to ${low}: 3 the stores are at offset ${rows[0].next_offset}, and the log begins at ${low}`,
    );
    expect(code).to.equal(1);
  });
});
