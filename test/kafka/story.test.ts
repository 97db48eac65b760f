/**
 * The whole story on three brokers: two APIs and three workers on twelve partitions, every fifth event sent twice, while
 * workers are killed, frozen and added, and brokers are killed one at a time and all at once. In the end every row of the
 * aggregate equals a plain recomputation from what was acknowledged. `SEEDS=1-10 npm run
 * test:kafka -- test/kafka/story.test.ts` runs ten seeds.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { Decimal } from '../../core/foundation/decimal.ts';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';
import { type Cluster, type ClusterProcess, startCluster } from '../support/cluster.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { type Chance, createChance, seedsToRun } from '../support/seeds.ts';
import { untilDailyRollups } from '../support/settled.ts';

const BATCH = 200;
const SENDERS = 4;
const DAYS = 4;
const FROM = Date.parse('2026-03-10T00:00:00Z');
const FIRST_DAY = FROM / 86_400_000;
/** Longer than a worker may be silent before the group gives its partitions to others. */
const FROZEN_MS = 13_000;
/** From the last acknowledgement until all of it is in the stores, on a machine that may be busy with other things. */
const SETTLED_WITHIN_MS = 150_000;

type Sent = {
  event_id: string;
  event_name: string;
  external_customer_id: string;
  timestamp: string;
  properties: { n: string; host: string };
};
type Meter = { id: string; type: 'COUNT' | 'SUM' | 'MAX' | 'COUNT_UNIQUE'; counts(event: Sent): boolean };
type Row = { event_count: number; sum: string | null; max: string | null; uniques: number | null };

describe('the story on three brokers', function () {
  this.timeout(900_000);
  let kafka: TestKafka;

  before(async () => {
    kafka = await startKafka({ brokers: 3 });
  });
  after(() => kafka?.wipe());

  for (const seed of seedsToRun(2)) {
    it(`counts every event once, to the digit (seed ${seed})`, async () => {
      const chance = createChance(seed);
      const cluster = await startCluster({
        kafka,
        replication: 3,
        apis: 2,
        pipelines: 3,
        // Small slices, so that a kill meets one of them half done.
        settings: { SLICE_EVENTS_MAX: '500', SLICE_WAIT_MS: '20', LOG_LEVEL: 'error' },
      });
      try {
        const producer = new Producer(cluster, createChance(seed + 1000));
        await producer.createMeters(['COUNT', 'SUM']);
        const sending = producer.send();
        await Promise.all([
          troubleWorkers(cluster, chance),
          troubleBrokers(kafka, createChance(seed + 2000)),
          producer.createMetersLater(),
          askForDailyRollups(cluster, createChance(seed + 3000)),
        ]);
        producer.isEnough = true;
        await sending;
        const settled = () => cluster.waitForPipeline(SETTLED_WITHIN_MS);
        await settled();
        await untilDailyRollups(cluster.database.postgres, FIRST_DAY + DAYS + 1, settled);
        const { stored, rows } = await storedRows(cluster);
        const expected = recomputed(producer.accepted.values(), producer.meters);
        expect(stored).to.equal(producer.accepted.size);
        expect(rows.size).to.be.above(1000);
        expect(differences(rows, expected)).to.deep.equal([]);
        expect(producer.repeats / producer.accepted.size).to.be.within(0.15, 0.25);
      } finally {
        await cluster.stop();
      }
    });
  }
});

/** Kills one, freezes one for longer than its session, kills another while that wakes, and adds a fourth. */
async function troubleWorkers(cluster: Cluster, chance: Chance): Promise<void> {
  const [first, second, third] = chance.shuffled(cluster.processes('pipeline')) as [
    ClusterProcess,
    ClusterProcess,
    ClusterProcess,
  ];
  await pause(chance.whole(500, 2_500));
  second.signal('SIGSTOP');
  await pause(chance.whole(100, 2_000));
  await first.kill('SIGKILL');
  await cluster.restart(first);
  await cluster.add('pipeline');
  await pause(FROZEN_MS);
  second.signal('SIGCONT');
  await pause(chance.whole(0, 1_500));
  await third.kill('SIGKILL');
  await cluster.restart(third);
}

/** Daily rollups of one day after the other, while events of all days arrive. */
async function askForDailyRollups({ database }: Cluster, chance: Chance): Promise<void> {
  for (let day = 1; day < DAYS; day++) {
    await pause(chance.whole(1_000, 5_000));
    await requestDailyRollups(database.postgres, FIRST_DAY + day);
  }
}

async function troubleBrokers(kafka: TestKafka, chance: Chance): Promise<void> {
  await pause(chance.whole(2_000, 4_000));
  const one = chance.whole(1, 3);
  await kafka.kill(one);
  await pause(chance.whole(0, 3_000));
  await kafka.restart(one);
  await pause(chance.whole(500, 2_000));
  await kafka.kill();
  await kafka.restart();
}

/** It sends until it has an acknowledgement, from whichever API, and knows nothing of kills. */
class Producer {
  /** What was acknowledged, by id. */
  readonly accepted = new Map<string, Sent>();
  readonly #acknowledged: Sent[] = [];
  readonly meters: Meter[] = [];
  repeats = 0;
  isEnough = false;
  readonly #cluster: Cluster;
  readonly #chance: Chance;
  #made = 0;

  constructor(cluster: Cluster, chance: Chance) {
    this.#cluster = cluster;
    this.#chance = chance;
  }

  async send(): Promise<void> {
    const sender = async () => {
      while (!this.isEnough) {
        const fresh = Array.from({ length: BATCH }, () => this.#event());
        const again = this.#again(BATCH / 5);
        this.repeats += again.length;
        await this.#untilTaken('/events/bulk', { events: this.#chance.shuffled([...fresh, ...again]) }, 202);
        for (const event of fresh) this.accepted.set(event.event_id, event);
        this.#acknowledged.push(...fresh);
        await pause(30);
      }
    };
    await Promise.all(Array.from({ length: SENDERS }, sender));
  }

  async createMeters(types: Meter['type'][]): Promise<void> {
    for (const type of types) {
      const field = type === 'COUNT' ? null : type === 'COUNT_UNIQUE' ? 'host' : 'n';
      const filters = type === 'COUNT' ? [] : [{ key: 'host', values: ['h0', 'h1', 'h2', 'h3'] }];
      const body = { name: type, event_name: 'call', aggregation: { type, field }, filters };
      const { id } = (await this.#untilTaken('/meters', body, 201)) as { id: string };
      this.meters.push({ id, type, counts: ({ properties }) => type === 'COUNT' || /^h[0-3]$/.test(properties.host) });
    }
  }

  /** A meter that comes later counts what was before as well. */
  async createMetersLater(): Promise<void> {
    await pause(this.#chance.whole(3_000, 12_000));
    await this.createMeters(['MAX', 'COUNT_UNIQUE']);
  }

  #event(): Sent {
    const chance = this.#chance;
    return {
      event_id: `e${this.#made++}`,
      event_name: 'call',
      external_customer_id: `customer ${chance.whole(1, 12)}`,
      timestamp: new Date(FROM + chance.whole(0, DAYS * 86_400_000 - 1)).toISOString(),
      properties: { n: `${chance.whole(0, 9999)}.${chance.whole(1, 999_999_999)}`, host: `h${chance.whole(0, 5)}` },
    };
  }

  /** Some of what was acknowledged, so that it is sure to come again. */
  #again(count: number): Sent[] {
    const known = this.#acknowledged;
    return known.length === 0 ? [] : Array.from({ length: count }, () => this.#chance.pick(known));
  }

  async #untilTaken(path: string, body: unknown, status: number): Promise<unknown> {
    for (let tries = 0; ; tries++) {
      const api = this.#chance.whole(0, 1);
      const answer = await this.#cluster.request('POST', path, { body, api, timeout_ms: 15_000 }).catch(() => null);
      if (answer?.status === status) return answer.body;
      if (answer && answer.status !== 503) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      // A meter that was made although its answer was lost would stand there twice.
      if (answer === null && path === '/meters') throw new Error('a meter was sent and never answered');
      await pause(200);
    }
  }
}

/** By the rules and nothing else: for each meter, customer, hour and day, what its events come to. */
function recomputed(events: Iterable<Sent>, meters: readonly Meter[]): Map<string, Row> {
  const groups = new Map<string, { meter: Meter; events: Sent[] }>();
  for (const event of events) {
    const at = Date.parse(event.timestamp);
    for (const meter of meters) {
      if (!meter.counts(event)) continue;
      for (const [size, width] of [
        ['HOUR', 3_600_000],
        ['DAY', 86_400_000],
      ] as const) {
        const key = `${meter.id} ${size} ${event.external_customer_id} ${(at - (at % width)) / 1000}`;
        const group = groups.get(key) ?? { meter, events: [] };
        groups.set(key, group);
        group.events.push(event);
      }
    }
  }
  return new Map([...groups].map(([key, { meter, events: some }]) => [key, rowOf(meter, some)]));
}

function rowOf({ type }: Meter, events: readonly Sent[]): Row {
  const values = events.map((event) => new Decimal(event.properties.n));
  return {
    event_count: events.length,
    sum: type === 'SUM' ? values.reduce((a, b) => a.plus(b)).toFixed() : null,
    max: type === 'MAX' ? values.reduce((a, b) => (b.gt(a) ? b : a)).toFixed() : null,
    uniques: type === 'COUNT_UNIQUE' ? new Set(events.map((event) => event.properties.host)).size : null,
  };
}

async function storedRows({ database }: Cluster): Promise<{ stored: number; rows: Map<string, Row> }> {
  const ask = async <Answer>(query: string) =>
    (await database.clickhouse.query({ query, format: 'JSONEachRow' })).json<Answer>();
  const [{ n } = { n: '0' }] = await ask<{ n: string }>('select count() as n from events');
  const stored = await ask<{ key: string; events: string; total: string; greatest: string | null; hosts: string }>(
    `select concat(meter_id, ' ', upper(size), ' ', external_customer_id, ' ', toString(toUnixTimestamp(bucket_start))) as key,
            sum(event_count) as events, toString(sum(usage_buckets.sum)) as total,
            toString(max(usage_buckets.max)) as greatest, uniqExactArray(unique_values) as hosts
       from usage_buckets where meter_id <> '' group by meter_id, size, external_customer_id, bucket_start`,
  );
  const { rows } = await database.postgres.raw(`select id, aggregation->>'type' as type from meters`);
  const types = new Map<string, string>(rows.map((row: { id: string; type: string }) => [row.id, row.type]));
  const row = (of: (typeof stored)[number]): Row => {
    const type = types.get(of.key.split(' ')[0]!);
    return {
      event_count: Number(of.events),
      sum: type === 'SUM' ? new Decimal(of.total).toFixed() : null,
      max: type === 'MAX' ? new Decimal(of.greatest!).toFixed() : null,
      uniques: type === 'COUNT_UNIQUE' ? Number(of.hosts) : null,
    };
  };
  return { stored: Number(n), rows: new Map(stored.map((of) => [of.key, row(of)])) };
}

function differences(stored: Map<string, Row>, expected: Map<string, Row>): string[] {
  const keys = new Set([...stored.keys(), ...expected.keys()]);
  return [...keys]
    .filter((key) => JSON.stringify(stored.get(key)) !== JSON.stringify(expected.get(key)))
    .slice(0, 10)
    .map((key) => `${key}: ${JSON.stringify(stored.get(key))} instead of ${JSON.stringify(expected.get(key))}`);
}
