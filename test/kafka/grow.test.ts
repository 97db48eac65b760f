/** Partitions are added to a topic by `npm run partitions`, also when it is killed half-way, and every event still counts once. */
import { expect } from 'chai';
import { createKafkaClient } from '../../storage/log/kafka/client.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { untilDailyRollups } from '../support/settled.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
const FROM = Date.parse('2026-03-10T00:00:00Z');

describe('growing a topic', function () {
  this.timeout(180_000);
  let kafka: TestKafka;
  let cluster: Cluster;

  before(async () => {
    kafka = await startKafka({ brokers: 1 });
    cluster = await startCluster({
      kafka,
      partitions: 3,
      settings: { LOG_APPEND_TIMEOUT_MS: '1500', SLICE_WAIT_MS: '20' },
    });
  });
  after(async () => {
    await cluster?.stop();
    await kafka?.wipe();
  });

  const events = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => ({
      event_id: `e${from + index}`,
      event_name: 'call',
      external_customer_id: `customer ${(from + index) % 7}`,
      timestamp: new Date(FROM + ((from + index) % 72) * HOUR_MS).toISOString(),
      properties: { n: String(from + index) },
    }));
  const ingest = (from: number, to: number) =>
    cluster.request('POST', '/events/bulk', { body: { events: events(from, to) } });
  const createMeter = async (type: 'COUNT' | 'SUM') => {
    const body = {
      name: type,
      event_name: 'call',
      aggregation: { type, field: type === 'SUM' ? 'n' : null },
      filters: [],
    };
    const answer = await cluster.request('POST', '/meters', { body });
    expect(answer.status, JSON.stringify(answer.body)).to.equal(201);
    return answer.body.id as string;
  };
  const ask = async <Row>(query: string) =>
    (await cluster.database.clickhouse.query({ query, format: 'JSONEachRow' })).json<Row>();
  /** Both sizes of rows of a meter: the events in them, and their sum. */
  const counted = async (meter: string) => {
    const rows = await ask<{ n: string; total: string }>(
      `select toString(sum(event_count)) as n, toString(toInt64(sum(usage_buckets.sum))) as total from usage_buckets
        where meter_id = '${meter}' group by size = 'DAY' order by size = 'DAY'`,
    );
    return rows.map(({ n, total }) => `${n} ${total}`);
  };
  const stored = async () =>
    ask<{ n: string; ids: string; partitions: string }>(
      'select count() as n, uniqExact(event_id) as ids, uniqExact(partition) as partitions from events',
    );
  const stopWorkers = async () => {
    for (const worker of cluster.processes('pipeline')) await worker.kill('SIGTERM');
    // One that ended while its group was being arranged anew is a member of it until its session is over.
    await until('nobody reads', async () => (await readers()) === 0);
  };
  const readers = async () => {
    const admin = createKafkaClient({ brokers: kafka.brokers.split(',') }).admin();
    await admin.connect();
    const { groups: known } = await admin.listGroups();
    const { groups } = await admin.describeGroups(known.map(({ groupId }) => groupId));
    await admin.disconnect();
    return groups.reduce((sum, { members }) => sum + members.length, 0);
  };
  const startWorker = () => cluster.restart(cluster.process('pipeline', 0));
  const grow = (to: number | string) => cluster.run('commands/partitions.ts', '--to', String(to));
  const partitionsMade = async () => {
    const { rows } = await cluster.database.postgres.raw('select partition_count from log_layout');
    const admin = createKafkaClient({ brokers: kafka.brokers.split(',') }).admin();
    await admin.connect();
    const topic = (await admin.listTopics()).find((name) => /^cluster.*\.events$/.test(name))!;
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    await admin.disconnect();
    return { topic: topics[0]!.partitions.length, used: rows[0].partition_count };
  };
  const sum = (from: number, to: number) => ((to - 1 + from) * (to - from)) / 2;

  let count: string;
  let total: string;

  it('is refused while a worker reads, while records wait, and for fewer partitions', async () => {
    count = await createMeter('COUNT');
    total = await createMeter('SUM');
    expect((await ingest(0, 600)).status).to.equal(202);
    await cluster.waitForPipeline();
    const beside = await grow(5).ended;
    expect(beside.output).to.include('1 workers still run');
    expect(beside.code).to.equal(1);
    await stopWorkers();
    expect((await ingest(600, 700)).status).to.equal(202);
    expect((await grow(5).ended).output).to.match(/not drained: records wait in partitions/);
    await startWorker();
    await cluster.waitForPipeline();
    await untilDailyRollups(cluster.database.postgres, FROM / (24 * HOUR_MS) + 10, () => cluster.waitForPipeline());
    await stopWorkers();
    expect((await grow(3).ended).output).to.include('the log has 3 partitions; partitions can only be added');
    expect((await grow('many').ended).output).to.include('--to wants a whole number');
    expect(await partitionsMade()).to.deep.equal({ topic: 3, used: 3 });
  });

  it('killed half-way: nothing is accepted, what is there is processed by the old number, and it is finished by another run', async () => {
    const broken = grow(5);
    await until('the topic has its new partitions', async () => (await partitionsMade()).topic === 5);
    broken.kill();
    expect((await broken.ended).code).to.equal(null);
    expect(await partitionsMade()).to.deep.equal({ topic: 5, used: 3 });

    // Within seconds the API that ran all the time has seen it; what it took before went to where it belongs.
    let accepted = 700;
    await until('the API takes no more', async () => {
      const { status, body } = await ingest(accepted, accepted + 10);
      if (status === 202) accepted += 10;
      else expect(body.message ?? JSON.stringify(body)).to.include('its topic has 5 partitions, 3 are in use');
      return status === 503;
    });
    expect((await cluster.process('api', 0).get('/ready')).status).to.equal(503);
    await cluster.process('api', 0).kill('SIGTERM');
    await cluster.restart(cluster.process('api', 0));
    expect((await ingest(accepted, accepted + 10)).status, 'nor does one that starts now').to.equal(503);
    await startWorker();
    await cluster.waitForPipeline();
    expect(await counted(count)).to.deep.equal([`${accepted} 0`, `${accepted} 0`]);
    await stopWorkers();

    const finished = await grow(5).ended;
    expect(finished.output).to.include('the event log has 5 partitions, it had 3');
    expect(finished.code).to.equal(0);
    expect(await partitionsMade()).to.deep.equal({ topic: 5, used: 5 });
  });

  it('a process that began with the old number ends', async () => {
    const old = cluster.process('api', 0);
    // It may be gone before it has answered.
    expect((await ingest(0, 10).catch(() => null))?.status ?? 503).to.equal(503);
    expect(await old.ended).to.not.equal(0);
    expect(old.output()).to.include('the event log has 5 partitions now, this process began with 3');
  });

  it('counts what comes again once, what is new, and the past of a meter that comes later', async () => {
    await cluster.reopenLog();
    await cluster.restart(cluster.process('api', 0));
    await startWorker();
    expect((await ingest(0, 1000)).status).to.equal(202);
    expect((await ingest(500, 1500)).status).to.equal(202);
    await cluster.waitForPipeline();
    const both = (text: string) => [text, text];
    expect(await counted(count)).to.deep.equal(both('1500 0'));
    expect(await counted(total)).to.deep.equal(both(`1500 ${sum(0, 1500)}`));
    expect(await stored()).to.deep.equal([{ n: '1500', ids: '1500', partitions: '5' }]);
    const later = await createMeter('SUM');
    await cluster.waitForPipeline();
    expect(await counted(later)).to.deep.equal(both(`1500 ${sum(0, 1500)}`));
    expect((await ingest(1400, 1600)).status).to.equal(202);
    await cluster.waitForPipeline();
    for (const meter of [total, later]) expect(await counted(meter)).to.deep.equal(both(`1600 ${sum(0, 1600)}`));
  });

  it('corrects an event from before on the partition to which its id belongs now', async () => {
    for (const id of [0, 1, 2, 3, 4, 599]) {
      const answer = await cluster.request('POST', `/events/e${id}/void`, { body: { reason: 'sent by mistake' } });
      expect(answer.status, JSON.stringify(answer.body)).to.be.below(300);
    }
    await cluster.waitForPipeline();
    await until('the rows are right', async () => (await counted(count)).join() === '1594 0,1594 0');
    const left = sum(0, 1600) - 609;
    expect(await counted(total)).to.deep.equal([`1594 ${left}`, `1594 ${left}`]);
  });
});
