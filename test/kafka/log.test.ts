/** The log on a real Kafka keeps the promises of every log, and some of its own. */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { expect } from 'chai';
import { recordCrc } from '../../storage/log/continuity.ts';
import { KafkaAdmin } from '../../storage/log/kafka/admin.ts';
import { computeShares } from '../../storage/log/kafka/assigner.ts';
import { createKafkaClient, guardIdleConnections, openSocket } from '../../storage/log/kafka/client.ts';
import { type KafkaLogOptions, openKafkaLog, shareInFlight } from '../../storage/log/kafka/kafka.ts';
import type { ConsumerProgress, EventLog, PartitionBatch } from '../../storage/log/log.ts';
import {
  entry,
  eventually,
  type LogUnderTest,
  logContract,
  type OpenOptions,
  Reader,
  settled,
  textOf,
} from '../storage/log/contract.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';

let topics = 0;

function optionsFor(kafka: TestKafka, more: Partial<KafkaLogOptions> = {}): KafkaLogOptions {
  return {
    brokers: kafka.brokers.split(','),
    topic_prefix: `test${++topics}`,
    partition_count: 3,
    replication: 1,
    retention_hours: 24,
    append_timeout_ms: 5_000,
    session_timeout_ms: 6_000,
    linger_ms: 20,
    ...more,
  };
}

/** As retention does. */
async function deleteBefore({ topic_prefix, ...options }: KafkaLogOptions, partition: number, offset: bigint) {
  const topic = `${topic_prefix}.events`;
  const admin = createKafkaClient(options).admin();
  await admin.connect();
  await admin.fetchTopicOffsets(topic); // kafkajs must have heard of the topic.
  await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] });
  await admin.disconnect();
}

async function deleteTopic({ topic_prefix, ...options }: KafkaLogOptions): Promise<void> {
  const admin = createKafkaClient(options).admin();
  await admin.connect();
  await admin.deleteTopics({ topics: [`${topic_prefix}.events`] });
  await eventually(async () => expect(await admin.listTopics()).to.not.include(`${topic_prefix}.events`));
  await admin.disconnect();
}

/** Works in stretches of a tenth of a second, and lets the event loop go round once between two of them. */
class BusyReader extends Reader {
  readonly #work_ms: number;

  constructor(work_ms: number) {
    super();
    this.#work_ms = work_ms;
  }

  override async process(batch: PartitionBatch): Promise<ConsumerProgress> {
    const end = performance.now() + this.#work_ms;
    while (performance.now() < end) {
      const stretch = performance.now() + 100;
      while (performance.now() < stretch);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return super.process(batch);
  }
}

describe('the log on one broker', function () {
  this.timeout(90_000);
  let kafka: TestKafka;

  before(async function () {
    this.timeout(180_000);
    kafka = await startKafka({ brokers: 1 });
  });
  after(() => kafka.wipe());

  const newLog = async (partition_count: number): Promise<LogUnderTest> => {
    const options = optionsFor(kafka, { partition_count });
    return {
      open: (more: OpenOptions = {}): Promise<EventLog> => openKafkaLog({ ...options, ...more }),
      goAway: () => kafka.kill(),
      comeBack: () => kafka.restart(),
      hang: () => kafka.pause(),
      goOn: async () => kafka.resume(),
      loseBefore: (partition, offset) => deleteBefore(options, partition, offset),
      close: async () => {},
    };
  };
  logContract(newLog);

  it('makes its topic with the partitions and the settings that were asked for, once', async () => {
    const options = optionsFor(kafka, { partition_count: 5, retention_hours: 3 });
    const logs = await Promise.all([openKafkaLog(options), openKafkaLog(options), openKafkaLog(options)]);
    const other = await openKafkaLog({ ...options, partition_count: 9 });
    expect([...logs, other].map((log) => log.partition_count)).to.deep.equal([5, 5, 5, 5]);
    await Promise.all([...logs, other].map((log) => log.close()));
    const admin = createKafkaClient(options).admin();
    await admin.connect();
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: 2, name: `${options.topic_prefix}.events` }],
    });
    await admin.disconnect();
    const settings = new Map(
      resources[0]!.configEntries.map(({ configName, configValue }) => [configName, configValue]),
    );
    expect(settings.get('retention.ms')).to.equal(String(3 * 3_600_000));
    expect(settings.get('message.timestamp.type')).to.equal('LogAppendTime');
    expect(settings.get('min.insync.replicas')).to.equal('1');
  });

  it('says so when retention has taken what the stores do not have yet, and steps over nothing', async () => {
    const options = optionsFor(kafka, { partition_count: 1 });
    const log = await openKafkaLog(options);
    await log.append(['a', 'b', 'c', 'd'].map((text) => entry(0, text)));
    await deleteBefore(options, 0, 3n);
    const reader = new Reader({ from: new Map([[0, 1n]]) });
    const consumer = await log.consume(reader);
    await reader.until(() => reader.errors.length >= 2);
    expect(String(reader.errors[0])).to.include('the stores are at offset 1, but the log begins at offset 3');
    expect(reader.records).to.deep.equal([]);
    await consumer.stop();
    const ahead = new Reader({ from: new Map([[0, 9n]]) });
    const another = await log.consume(ahead);
    await ahead.until(() => ahead.errors.length >= 1);
    expect(String(ahead.errors[0])).to.include('the stores are at offset 9, but the log ends at offset 4');
    await another.stop();
    await log.close();
  });

  it('is told from another topic of the same name that has more records', async () => {
    const options = optionsFor(kafka, { partition_count: 1 });
    const first = await openKafkaLog(options);
    await first.append(['a', 'b', 'c'].map((text) => entry(0, text)));
    const reader = new Reader();
    const consumer = await first.consume(reader);
    await reader.until(() => reader.records.length === 3);
    const last = reader.of(0)[2]!;
    await consumer.stop();
    await first.close();
    await deleteTopic(options);
    const second = await eventually(async () => {
      const opened = await openKafkaLog(options);
      await opened.append(['v', 'w', 'x', 'y', 'z'].map((text) => entry(0, text)));
      return opened;
    });
    const stores = { from: new Map([[0, 3n]]), last_record: new Map([[0, recordCrc(last)]]) };
    const again = new Reader(stores);
    const another = await second.consume(again);
    await again.until(() => again.errors.length >= 2);
    expect(String(again.errors[0])).to.include(
      'partition 0 is halted: the record at offset 2 is not the one that was processed',
    );
    expect(again.records).to.deep.equal([]);
    await another.stop();
    await second.close();
  });

  for (const [what, texts] of [
    ['shorter', ['v', 'w']],
    ['longer', ['v', 'w', 'x', 'y', 'z']],
  ] as const) {
    it(`is told from a ${what} one also while it is read`, async () => {
      const options = optionsFor(kafka, { partition_count: 1 });
      const log = await openKafkaLog(options);
      const reader = new Reader();
      const consumer = await log.consume(reader);
      await log.append(['a', 'b', 'c'].map((text) => entry(0, text)));
      await reader.until(() => reader.records.length === 3);
      reader.last_record.set(0, recordCrc(reader.of(0)[2]!));
      await deleteTopic(options);
      const writer = await eventually(async () => {
        const opened = await openKafkaLog(options);
        await opened.append(texts.map((text) => entry(0, text)));
        return opened;
      });
      await reader.until(() => reader.errors.some((error) => String(error).includes('is halted')));
      expect(reader.given.map(textOf)).to.deep.equal(['a', 'b', 'c']);
      await consumer.stop();
      await Promise.all([log.close(), writer.close()]);
    });
  }

  it('keeps its partition during work that takes longer than the session, if the work lets others run', async () => {
    const options = optionsFor(kafka, { partition_count: 1, session_timeout_ms: 6_000 });
    const [log, rival] = [await openKafkaLog(options), await openKafkaLog(options)];
    const reader = new BusyReader(9_000);
    const consumer = await log.consume(reader);
    await reader.until(() => reader.owns(0));
    const other = new Reader();
    const second = await rival.consume(other);
    await log.append([entry(0, 'long work')]);
    await reader.until(() => reader.records.length === 1);
    expect(reader.lastBatch!.isOwner()).to.equal(true);
    expect(reader.assignments(0) + other.assignments(0)).to.equal(1);
    await Promise.all([consumer.stop(), second.stop()]);
    await Promise.all([log.close(), rival.close()]);
  });

  it('gets more partitions when nobody reads, and keeps what was in it', async () => {
    const options = optionsFor(kafka, { partition_count: 2 });
    const log = await openKafkaLog(options);
    await log.append([entry(0, 'before'), entry(1, 'before')]);
    const reader = new Reader();
    const consumer = await log.consume(reader);
    await reader.until(() => reader.records.length === 2);
    const refused = await log.addPartitions(4).catch((error: Error) => error);
    expect(refused).to.be.an('error').with.property('message').that.includes('workers still run');
    await consumer.stop();
    await log.addPartitions(4);
    await log.close();
    const grown = await openKafkaLog(options);
    expect(grown.partition_count).to.equal(4);
    await grown.append([entry(3, 'after'), entry(0, 'after')]);
    expect((await grown.lag()).map(({ end_offset }) => Number(end_offset))).to.deep.equal([2, 1, 0, 1]);
    // The stores have what was there before: that was the condition.
    const stored = new Map([0, 1].map((partition) => [partition, 1n]));
    const again = new Reader({ from: stored });
    const another = await grown.consume(again);
    await again.until(() => again.records.length === 2);
    expect(again.inOrder().map(textOf)).to.deep.equal(['after', 'after']);
    await another.stop();
    await grown.close();
  });

  it('uses the partitions that the layout names, and takes nothing while its topic has more', async () => {
    const options = optionsFor(kafka, { partition_count: 4 });
    const made = await openKafkaLog(options);
    await made.append([entry(0, 'spread over four')]);
    await made.close();
    const ended: Error[] = [];
    let used = 2;
    const layout = { claim: async () => used, read: async () => used };
    const log = await openKafkaLog({ ...options, layout, onFatal: (error) => ended.push(error) });
    expect(log.partition_count).to.equal(2);
    // The first question about a group may meet a coordinator that is not there yet.
    await eventually(async () => expect((await log.lag()).length).to.equal(2));
    for (const refused of [log.append([entry(1, 'x')]), log.ping()]) {
      const error = await refused.then(
        () => null,
        (reason: Error) => reason,
      );
      expect(error).to.have.property('message').that.includes('its topic has 4 partitions, 2 are in use');
    }
    const reader = new Reader();
    const consumer = await log.consume(reader);
    await reader.until(() => reader.errors.length >= 1);
    expect(String(reader.errors[0])).to.include(
      'partition 0: the record at offset 0 was spread over 4 partitions, but 2 are in use',
    );
    expect(reader.records).to.deep.equal([]);
    expect(ended).to.deep.equal([]);
    used = 4;
    await reader.until(() => ended.length > 0);
    expect(String(ended[0])).to.include('the event log has 4 partitions now, this process began with 2');
    await consumer.stop();
    await log.close();
    const gone = openKafkaLog({ ...options, layout: { claim: async () => 5, read: async () => 5 } });
    expect(await gone.catch((error: Error) => error.message)).to.include(
      'ids are spread over 5 partitions, but the topic',
    );
  });

  it('leaves a connection once, however many questions on it fail', async () => {
    const options = optionsFor(kafka);
    const admin = new KafkaAdmin(() => createKafkaClient(options, { requestTimeout: 1_000 }));
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    const asked = Array.from({ length: 15 }, () => admin.bounds('a.topic.that.is.not.there'));
    const answers = await Promise.allSettled(asked);
    await admin.close();
    process.off('warning', warned);
    expect(answers.every(({ status }) => status === 'rejected')).to.equal(true);
    expect(warnings).to.deep.equal([]);
  });

  it('takes a body of 8 MiB, and many of them at once', async () => {
    const options = optionsFor(kafka, { partition_count: 2, append_timeout_ms: 30_000 });
    const log = await openKafkaLog(options);
    const large = { body: Buffer.alloc(8 * 1024 * 1024, 'x') };
    await Promise.all([
      log.append([entry(0, '', large), entry(1, '', large), entry(0, '', large)]),
      log.append([entry(1, '', large)]),
    ]);
    const reader = new Reader();
    const consumer = await log.consume(reader);
    await reader.until(() => reader.records.length === 4);
    expect(reader.records.every((record) => record.body.equals(large.body))).to.equal(true);
    const refused = await log
      .append([entry(0, '', { body: Buffer.alloc(8 * 1024 * 1024 + 1) })])
      .catch((error: Error) => error);
    expect(refused).to.be.an('error').with.property('message').that.includes('8388608 bytes at most');
    await consumer.stop();
    await log.close();
  });
});

describe('the log on three brokers', function () {
  this.timeout(180_000);
  let kafka: TestKafka;

  before(async () => {
    kafka = await startKafka({ brokers: 3 });
  });
  after(() => kafka.wipe());

  it('loses nothing that it has acknowledged while a broker is killed and restarted, and then all at once', async () => {
    const options = optionsFor(kafka, { replication: 3, partition_count: 6, append_timeout_ms: 3_000 });
    const log = await openKafkaLog(options);
    const reader = new Reader();
    const consumer = await log.consume(reader);
    const acknowledged: string[] = [];
    let sent = 0;
    let sending = true;
    const producers = [0, 1, 2].map(async () => {
      while (sending) {
        const entries = Array.from({ length: 12 }, (_, index) => entry(index % 6, `event ${sent++}`));
        const isDurable = await log.append(entries).then(
          () => true,
          () => false,
        );
        if (isDurable) acknowledged.push(...entries.map((each) => (JSON.parse(each.body.toString()) as [string])[0]));
      }
    });
    const progress = async () => {
      const wanted = acknowledged.length + 60;
      await eventually(async () => {
        if (acknowledged.length < wanted) throw new Error('nothing is acknowledged');
      });
    };
    await kafka.kill(2);
    await progress();
    await kafka.restart(2);
    await progress();
    await kafka.kill();
    await kafka.restart();
    await progress();
    sending = false;
    await Promise.all(producers);
    await settled(log);
    const seen = new Set(reader.records.map(textOf));
    expect(acknowledged.filter((text) => !seen.has(text))).to.deep.equal([]);
    expect(acknowledged.length).to.be.above(180);
    await consumer.stop();
    await log.close();
  });
});

describe('what kafkajs needs from us', () => {
  it('has the function that the guard against the idle spin replaces, and it is replaced', () => {
    const queue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
      prototype: { scheduleCheckPendingRequests: unknown; checkPendingRequests: unknown };
    };
    guardIdleConnections();
    const { scheduleCheckPendingRequests, checkPendingRequests } = queue.prototype;
    expect(scheduleCheckPendingRequests).to.be.a('function').with.property('name', 'guarded');
    expect(String(checkPendingRequests)).to.include('this.scheduleCheckPendingRequests()');
  });

  it('leaves no listener on a socket that is gone, however often its reference is taken', async () => {
    const server = createServer((socket) => socket.end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const socket = openSocket({ host: '127.0.0.1', port, ssl: undefined as never, onConnect: () => {} });
    socket.resume();
    await once(socket, 'close');
    const before = socket.listenerCount('connect');
    for (let time = 0; time < 20; time++) socket.unref();
    expect(socket.listenerCount('connect')).to.equal(before);
    server.close();
  });

  it('plans no timer for an empty queue, and one for a full or throttled one', () => {
    const Queue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as new (
      options: object,
    ) => {
      pending: unknown[];
      throttledUntil: number;
      throttleCheckTimeoutId: unknown;
      scheduleCheckPendingRequests(): void;
      destroy(): void;
    };
    const planned = (change: (queue: InstanceType<typeof Queue>) => void) => {
      const queue = new Queue({ logger: {}, clientId: '', broker: '' });
      change(queue);
      queue.scheduleCheckPendingRequests();
      const isPlanned = queue.throttleCheckTimeoutId !== null;
      queue.destroy();
      return isPlanned;
    };
    expect(planned(() => {})).to.equal(false);
    expect(planned((queue) => queue.pending.push({}))).to.equal(true);
    expect(planned((queue) => (queue.throttledUntil = Date.now() + 60_000))).to.equal(true);
  });
});

describe('the shares of a group', () => {
  const twelve = Array.from({ length: 12 }, (_, index) => index);
  const cases: [string, Record<string, number[]>, Record<string, number[]>][] = [
    ['one takes all', { a: [] }, { a: twelve }],
    ['two who come together', { a: [], b: [] }, { a: [0, 2, 4, 6, 8, 10], b: [1, 3, 5, 7, 9, 11] }],
    [
      'a third joins: who has, keeps what its share allows',
      { a: [0, 2, 4, 6, 8, 10], b: [1, 3, 5, 7, 9, 11], c: [] },
      { a: [0, 2, 4, 6], b: [1, 3, 5, 7], c: [8, 9, 10, 11] },
    ],
    [
      'one has gone: nobody else loses any',
      { a: [0, 2, 4, 6], c: [8, 9, 10, 11] },
      { a: [0, 2, 4, 6, 1, 5], c: [8, 9, 10, 11, 3, 7] },
    ],
    [
      'two claim the same, and what is not there any more',
      { a: [0, 1, 99], b: [0, 1] },
      { a: [0, 1, 4, 6, 8, 10], b: [2, 3, 5, 7, 9, 11] },
    ],
  ];
  for (const [what, claims, expected] of cases) {
    it(what, () => {
      const given = computeShares(twelve, new Map(Object.entries(claims)));
      expect(
        Object.fromEntries([...given].map(([member, share]) => [member, [...share].sort((a, b) => a - b)])),
      ).to.deep.equal(
        Object.fromEntries(
          Object.entries(expected).map(([member, share]) => [member, [...share].sort((a, b) => a - b)]),
        ),
      );
    });
  }
});

describe('a shared question', () => {
  it('is asked once for all who wait, and again for who came while it was asked', async () => {
    let asked = 0;
    const answers: ((value: number) => void)[] = [];
    const ask = shareInFlight(() => new Promise<number>((resolve) => (answers.push(resolve), asked++)));
    const tick = () => new Promise((resolve) => setImmediate(resolve));
    const first = [ask(), ask()];
    await tick();
    const second = [ask(), ask()];
    expect(asked).to.equal(1);
    answers[0]!(1);
    expect(await Promise.all(first)).to.deep.equal([1, 1]);
    await tick();
    answers[1]!(2);
    expect(await Promise.all(second)).to.deep.equal([2, 2]);
    expect(asked).to.equal(2);
  });
});
