// Proves that the Kafka we test against is what the other tests take it for: real, durable, and ours to break.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { Kafka, logLevel } from 'kafkajs';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { until } from '../support/until.ts';

describe('a test Kafka of one broker', function () {
  this.timeout(180_000);
  let dir: string;
  let kafka: TestKafka;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-kafka-'));
    kafka = await startKafka({ brokers: 1, dir });
  });
  after(() => kafka.wipe());

  it('keeps a message over kill -9 and a second start on the same data', async () => {
    await createTopic(kafka, 1);
    await produce(kafka, 'before the crash');
    await kafka.kill();
    expect(kafka.status()).to.equal('broker 1: does not run');
    await kafka.stop();
    kafka = await startKafka({ dir });
    expect(await consume(kafka, 1)).to.deep.equal(['before the crash']);
  });

  it('refuses to read the data as another cluster', async () => {
    const refusal = await startKafka({ dir, brokers: 3 }).catch((error: Error) => error);
    expect(refusal).to.be.an('error').with.property('message').that.includes('brokers=1, not 3');
  });

  it('refuses a broker that is not there', async () => {
    const refusal = await kafka.kill(2).catch((error: Error) => error);
    expect(refusal).to.be.an('error').with.property('message').that.includes('no broker 2');
  });
});

describe('a test Kafka of three brokers', function () {
  this.timeout(240_000);
  let kafka: TestKafka;

  before(async () => {
    kafka = await startKafka({ brokers: 3 });
  });
  after(() => kafka.wipe());

  it('takes messages from all in-sync replicas while one is killed, and again when it is back', async () => {
    await createTopic(kafka, 3);
    await produce(kafka, 'all three');
    await kafka.kill(2);
    await produce(kafka, 'two of three');
    await kafka.restart(2);
    // Two of three must be in step without the third: until the second has caught up, nobody could acknowledge.
    await until('all replicas are in step', () => areInStep(kafka, 3), 60_000);
    await kafka.pause(3);
    await produce(kafka, 'one hangs');
    kafka.resume(3);
    expect(await consume(kafka, 3)).to.deep.equal(['all three', 'two of three', 'one hangs']);
  });
});

describe('the process that holds a test Kafka', function () {
  this.timeout(180_000);

  it('takes its brokers along when it is killed', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'farthing-kafka-'));
    const script = join(import.meta.dirname, '..', 'support', 'kafka', 'broker.ts');
    const holder = spawn(process.execPath, ['--import', './process/typescript.mjs', script, 'start', '--dir', dir]);
    const address = await firstAddress(holder.stdout);
    holder.kill('SIGKILL');
    // A second start on the same data and port succeeds only when the first broker has let go of both.
    const again = await startAgain(dir);
    expect(again.brokers).to.equal(address);
    await again.wipe();
    expect(existsSync(dir)).to.equal(false);
    rmSync(dir, { recursive: true, force: true });
  });
});

const TOPIC = 'proof';

function client(kafka: TestKafka): Kafka {
  // A broker that hangs takes connections and answers nothing: who waits half a minute for each answer may not come through.
  const patience = { connectionTimeout: 1_000, requestTimeout: 3_000, retry: { retries: 60, maxRetryTime: 1_000 } };
  return new Kafka({ brokers: kafka.brokers.split(','), logLevel: logLevel.NOTHING, ...patience });
}

async function createTopic(kafka: TestKafka, replicationFactor: number): Promise<void> {
  const admin = client(kafka).admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: 1, replicationFactor }] });
  await admin.disconnect();
}

async function areInStep(kafka: TestKafka, replicas: number): Promise<boolean> {
  const admin = client(kafka).admin();
  await admin.connect();
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [TOPIC] });
    return topics[0]!.partitions[0]!.isr.length === replicas;
  } finally {
    await admin.disconnect();
  }
}

/** A client of kafkajs may hold on to a broker that hangs for minutes: then the next one is asked. */
async function produce(kafka: TestKafka, value: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const producer = client(kafka).producer();
    const sending = producer.connect().then(() => producer.send({ topic: TOPIC, acks: -1, messages: [{ value }] }));
    const outcome = await Promise.race([sending, lateAfter(SENT_WITHIN_MS)]).catch((error: Error) => error);
    void producer.disconnect().catch(() => undefined);
    if (Array.isArray(outcome)) return;
    if (tries === SENT_TRIES) throw outcome;
  }
}

const SENT_WITHIN_MS = 12_000;
const SENT_TRIES = 10;

function lateAfter(ms: number): Promise<Error> {
  return new Promise((resolve) => setTimeout(resolve, ms, new Error(`nothing was acknowledged within ${ms} ms`)));
}

async function consume(kafka: TestKafka, count: number): Promise<string[]> {
  const consumer = client(kafka).consumer({ groupId: 'proof' });
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  const seen = new Set<string>(); // A producer's own retry may write a message twice.
  await new Promise<void>((resolve, reject) => {
    const eachMessage = async ({ message }: { message: { value: Buffer | null } }) => {
      seen.add(String(message.value));
      if (seen.size >= count) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return [...seen];
}

async function firstAddress(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(output)) {
    if (line.startsWith('KAFKA_BROKERS=')) return line.slice('KAFKA_BROKERS='.length);
  }
  throw new Error('broker.ts ended without naming its address');
}

async function startAgain(dir: string, attempts = 10): Promise<TestKafka> {
  try {
    return await startKafka({ dir });
  } catch (error) {
    // The shell that kills the brokers may need a moment longer than the kill of their parent.
    if (attempts > 1 && /lock|in use/i.test((error as Error).message)) return startAgain(dir, attempts - 1);
    throw error;
  }
}
