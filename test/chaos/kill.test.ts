/**
 * kill -9 during ingestion: of the whole process, of Postgres, of ClickHouse, at seeded moments. A client sends again what
 * was not acknowledged, in other batches, with every fifth event a second time and some with another content; meters come
 * on the way. Afterwards every answer equals the reference model, to the digit. `SEED=7` runs one seed, `KILL_SEEDS=1-8` those of
 * this file alone.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import {
  eventsInEffect,
  type ModelEvent,
  type ModelMeter,
  type ModelQuestion,
  usageByModel,
} from '../support/reference-model.ts';
import { type Chance, createChance, seedsToRun } from '../support/seeds.ts';
import { runScript, type ServiceProcess, startServiceProcess, temporaryDirectory } from '../support/service.ts';

const EVENTS = 2_000;
const SENDERS = 3;
const START = '2026-03-10T00:00:00Z';
const END = '2026-03-14T00:00:00Z';

type Meter = ModelMeter & { id: string; name: string };
type World = { readonly meters: readonly Meter[]; readonly accepted: readonly ModelEvent[] };

/** Keeps the service running: whoever asks for it waits until it has been started again. */
class Operator {
  readonly #settings: { DATA_DIR: string } & Record<string, string>;
  #running: Promise<ServiceProcess> | undefined;

  constructor(DATA_DIR: string) {
    // Small slices, so that a kill meets one of them half done.
    const pipeline = { SLICE_EVENTS_MAX: '300', SLICE_WAIT_MS: '20', LOG_PARTITIONS: '3' };
    this.#settings = { DATA_DIR, BOOTSTRAP_API_KEY: 'sk_test_chaos', LOG_LEVEL: 'warn', ...pipeline };
  }

  async start(): Promise<void> {
    this.#running = startServiceProcess(this.#settings);
    await this.#running;
  }

  current(): Promise<ServiceProcess> {
    return this.#running!;
  }

  async stop(): Promise<void> {
    const service = await this.#running;
    await service?.stop();
  }

  /** Some seeds kill once more, while the service is just recovering. */
  async killDuring(chance: Chance, seed: number): Promise<string> {
    const victim = (['main', 'postgres', 'main', 'clickhouse'] as const)[seed % 4]!;
    const after_ms = chance.whole(0, 900);
    const during_start_ms = seed % 5 === 0 ? chance.whole(300, 2_500) : undefined;
    const service = await this.current();
    await pause(after_ms);
    process.kill(victim === 'main' ? service.pid : service.store(victim), 'SIGKILL');
    await service.ended; // Until then the client goes on with what still answers.
    this.#running = (async () => {
      if (during_start_ms !== undefined) await this.#killWhileStarting(during_start_ms);
      return startServiceProcess(this.#settings);
    })();
    await this.#running;
    return `${victim} after ${after_ms} ms${during_start_ms === undefined ? '' : `, and its start after ${during_start_ms} ms`}`;
  }

  async #killWhileStarting(after_ms: number): Promise<void> {
    const start = runScript('start', [], this.#settings);
    await pause(after_ms);
    start.child.kill('SIGKILL');
    await start.ended;
  }
}

/** A producer that does what producers do: it sends until it has an acknowledgement, and knows nothing of kills. */
class Client {
  readonly meters: Meter[] = [];
  /** In the order in which they were acknowledged; the first of an id is the one that counts. */
  readonly accepted: ModelEvent[] = [];
  readonly counts = { refused: 0, repeats: 0, conflicts: 0 };
  readonly #operator: Operator;
  readonly #chance: Chance;
  readonly #names: { call: string; job: string };
  readonly #planned: Omit<Meter, 'id'>[];
  #unsent: ModelEvent[];

  constructor(operator: Operator, chance: Chance, seed: number) {
    this.#operator = operator;
    this.#chance = chance;
    this.#names = { call: `call ${seed}`, job: `job ${seed}` };
    this.#planned = chance.shuffled(meterPlans(this.#names));
    this.#unsent = Array.from({ length: EVENTS }, (_none, index) =>
      randomEvent(chance, `${seed}-${index}`, this.#names),
    );
  }

  async sendEverything(): Promise<void> {
    const sender = async () => {
      while (this.#unsent.length > 0) await this.#sendSome();
    };
    const meters = async () => {
      for (let count = 0; count < 3; count++) {
        await pause(this.#chance.whole(0, 150));
        await this.createMeters(1);
      }
    };
    await Promise.all([...Array.from({ length: SENDERS }, sender), meters()]);
  }

  /** A batch that is not acknowledged goes back, and comes again among others. */
  async #sendSome(): Promise<void> {
    const fresh = this.#unsent.splice(0, this.#chance.whole(1, 120));
    const again = this.#againWith(Math.ceil(fresh.length / 5));
    const events = this.#chance.shuffled([...fresh, ...again]);
    if (await this.#isAcknowledged('/events/bulk', { events })) this.accepted.push(...fresh);
    else this.#unsent = this.#chance.shuffled([...this.#unsent, ...fresh]);
  }

  /** What was acknowledged before, so that it is sure to be the first of its id; some of it with another content. */
  #againWith(count: number): ModelEvent[] {
    if (this.accepted.length === 0) return [];
    return Array.from({ length: count }, () => {
      const event = this.#chance.pick(this.accepted);
      if (this.#chance.next() < 0.7) {
        this.counts.repeats++;
        return event;
      }
      this.counts.conflicts++;
      const other = randomEvent(this.#chance, event.event_id, this.#names);
      return this.#chance.next() < 0.5 ? other : { ...event, timestamp: other.timestamp };
    });
  }

  async #isAcknowledged(path: string, body: unknown): Promise<boolean> {
    try {
      const service = await this.#operator.current();
      const answer = await service.request('POST', path, { body });
      if (answer.status === 202) return true;
      expect(answer.status, answer.text).to.be.at.least(500);
    } catch (error) {
      if (!isConnectionError(error)) throw error;
    }
    this.counts.refused++;
    await pause(20);
    return false;
  }

  /** The next meters of the plan, each of them once: after a failure it looks whether the meter is there. */
  async createMeters(count: number): Promise<void> {
    for (const planned of this.#planned.splice(0, count)) {
      let id: string | undefined;
      while (id === undefined) {
        try {
          id = (await this.#findMeter(planned)) ?? (await this.#createMeter(planned));
        } catch (error) {
          if (!isConnectionError(error)) throw error;
          await pause(20);
        }
      }
      this.meters.push({ ...planned, id });
    }
  }

  async #findMeter({ name, event_name }: Omit<Meter, 'id'>): Promise<string | undefined> {
    const service = await this.#operator.current();
    const answer = await service.request('GET', `/meters?limit=100&event_name=${encodeURIComponent(event_name)}`);
    if (answer.status !== 200) return undefined;
    return answer.body.items.find((meter: Meter) => meter.name === name)?.id;
  }

  async #createMeter(body: Omit<Meter, 'id'>): Promise<string | undefined> {
    const service = await this.#operator.current();
    const answer = await service.request('POST', '/meters', { body });
    if (answer.status === 201) return answer.body.id;
    expect(answer.status, answer.text).to.be.at.least(500);
    await pause(20);
    return undefined;
  }
}

function isConnectionError(error: unknown): boolean {
  return error instanceof TypeError && /fetch failed|terminated/.test(error.message);
}

function meterPlans({ call, job }: { call: string; job: string }): Omit<Meter, 'id'>[] {
  const region = { key: 'region', values: ['eu', '1', 'true'] };
  const host = { key: 'host', values: ['h1', 'h2', '3'] };
  const plans: Omit<Meter, 'id' | 'name'>[] = [
    { event_name: call, aggregation: { type: 'COUNT' } },
    { event_name: call, aggregation: { type: 'COUNT' }, filters: [region, host] },
    { event_name: call, aggregation: { type: 'SUM', field: 'n' } },
    { event_name: job, aggregation: { type: 'SUM', field: 'n' }, filters: [region] },
    { event_name: call, aggregation: { type: 'SUM', field: 'n', bucket_size: '15MIN' } },
    { event_name: call, aggregation: { type: 'AVG', field: 'n' } },
    { event_name: job, aggregation: { type: 'COUNT_UNIQUE', field: 'host' } },
    { event_name: call, aggregation: { type: 'LATEST', field: 'n' } },
    { event_name: job, aggregation: { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.003' } },
    { event_name: call, aggregation: { type: 'MAX', field: 'n' } },
    { event_name: call, aggregation: { type: 'MAX', field: 'n', bucket_size: 'HOUR', group_by: 'host' } },
    { event_name: job, aggregation: { type: 'MAX', field: 'n', bucket_size: 'DAY' }, filters: [host] },
    { event_name: call, aggregation: { type: 'WEIGHTED_SUM', field: 'n' } },
  ];
  return plans.map((plan, index) => ({
    ...plan,
    name: `${plan.aggregation.type} ${index}`,
    reset_usage: 'BILLING_PERIOD',
  }));
}

const CUSTOMERS = ['acme', 'böhm', 'c'];
const INSTANTS = [
  '2026-03-11T00:00:00Z',
  '2026-03-11T23:59:59.999999Z',
  '2026-03-12T10:00:00Z',
  '2026-03-12T10:15:00+00:00',
];

function randomEvent(chance: Chance, event_id: string, { call, job }: { call: string; job: string }): ModelEvent {
  const ms = Date.parse(START) + Math.floor(chance.next() * (Date.parse(END) - Date.parse(START)));
  const timestamp =
    chance.next() < 0.05 ? chance.pick(INSTANTS) : new Date(ms).toISOString().replace('Z', `${chance.whole(0, 9999)}Z`);
  const name = chance.pick([call, call, job]);
  return {
    event_id,
    event_name: chance.next() < 0.1 ? `  ${name}\t` : name,
    external_customer_id: chance.pick(CUSTOMERS),
    timestamp,
    source: chance.pick(['web', 'batch']),
    properties: randomProperties(chance),
  };
}

function randomProperties(chance: Chance): Record<string, unknown> {
  const properties: Record<string, unknown> = {
    host: chance.pick(['h1', 'h2', 'h3', 3, '3', 3.5, true, null, 'H1']),
    region: chance.pick(['eu', 'us', 1, '1', true, null]),
  };
  if (chance.next() < 0.9) properties.n = randomQuantity(chance);
  if (chance.next() < 0.1) delete properties.host;
  return properties;
}

function randomQuantity(chance: Chance): unknown {
  return chance.pick<() => unknown>([
    () => chance.whole(-50, 5_000),
    () => chance.whole(0, 100) / 8,
    () => `${chance.whole(0, 999)}.${chance.whole(0, 999_999)}`,
    () => 0.1,
    () => chance.pick(['1e3', ' 7 ', '-2.5', '12345678901234567890.123456789', 1e21, '.5']),
    () => chance.pick(['abc', null, true, {}, [], '', '0x10', 'NaN', '1_000']),
  ])();
}

/** About each meter the whole range by days, and what else is asked. */
async function checkAnswers(
  service: ServiceProcess,
  { meters, accepted }: World,
  more: readonly ModelQuestion[] = [],
): Promise<void> {
  await settled(service);
  const first = eventsInEffect(accepted);
  const questions: ModelQuestion[] = [{ start: START, end: END, window_size: 'DAY' }, ...more];
  const asked = meters.flatMap((meter) => questions.map((question) => ({ meter, question })));
  for (let from = 0; from < asked.length; from += 4) {
    await Promise.all(
      asked.slice(from, from + 4).map(({ meter, question }) => checkAnswer(service, first, { meter, question })),
    );
  }
}

async function checkAnswer(
  service: ServiceProcess,
  events: readonly ModelEvent[],
  { meter, question }: { meter: Meter; question: ModelQuestion },
): Promise<void> {
  const { start, end, customers, window_size } = question;
  const body = {
    meter_id: meter.id,
    start_time: start,
    end_time: end,
    external_customer_id: customers?.[0],
    window_size,
  };
  const answer = await service.request('POST', '/events/usage/meter', { body });
  expect(answer.status, answer.text).to.equal(200);
  const expected = usageByModel(meter, events, question);
  const what = `${JSON.stringify({ meter, question })}`;
  const { value, event_count, results } = answer.body;
  expect({ value, event_count }, what).to.deep.equal({ value: expected.value, event_count: expected.event_count });
  const windows = expected.windows.map((window) => ({ window_size: window.start, value: window.value }));
  expect(results ?? [], what).to.deep.equal(windows);
}

function raggedQuestions(chance: Chance): ModelQuestion[] {
  return [
    { ...raggedRange(chance), customers: [chance.pick(CUSTOMERS)] },
    { ...raggedRange(chance), window_size: 'HOUR' },
  ];
}

function raggedRange(chance: Chance): { start: string; end: string } {
  const at = () =>
    Date.parse(START) + chance.whole(0, (Date.parse(END) - Date.parse(START)) / 1000) * 1000 + chance.whole(0, 999);
  const [start, end] = [at(), at()].sort((a, b) => a - b) as [number, number];
  return { start: new Date(start).toISOString(), end: new Date(end + 60_000).toISOString() };
}

/**
 * Everything that was accepted has had its effect, and every meter has seen its past. On a busy machine the past of ten meters takes minutes;
 * a lag that has not become smaller for one is a fault.
 */
async function settled(service: ServiceProcess): Promise<void> {
  let smallest = Number.POSITIVE_INFINITY;
  let until = performance.now() + 60_000;
  for (;;) {
    const { status, body } = await service.request('GET', '/events/monitoring');
    const lag = status === 200 ? body.consumption_lag + body.post_processing_lag : smallest;
    if (lag === 0) return;
    if (lag < smallest) until = performance.now() + 60_000;
    smallest = Math.min(smallest, lag);
    if (performance.now() > until)
      throw new Error(`the pipeline is behind: ${JSON.stringify(body)}\n${service.stdout().slice(-4_000)}`);
    await pause(30);
  }
}

describe('kill -9', function () {
  this.timeout(300_000);
  const directory = temporaryDirectory();
  const operator = new Operator(join(directory.path, 'data'));
  const worlds: World[] = [];

  before(() => operator.start());
  after(async () => {
    await operator.stop();
    directory.remove();
  });

  for (const seed of seedsToRun(20, 'KILL_SEEDS')) {
    it(`seed ${seed}`, async () => {
      const began = performance.now();
      const chance = createChance(seed);
      const client = new Client(operator, chance, seed);
      await client.createMeters(chance.whole(1, 6));
      const killing = operator.killDuring(chance, seed);
      await client.sendEverything();
      await client.createMeters(100);
      const killed = await killing;
      const sent = performance.now();
      const { meters, accepted } = client;
      await checkAnswers(await operator.current(), { meters, accepted }, raggedQuestions(chance));
      worlds.push({ meters, accepted });
      const { refused, repeats, conflicts } = client.counts;
      console.log(
        `      seed ${seed}: killed ${killed}; ${refused} requests failed, ${repeats} repeats, ${conflicts} conflicts; ` +
          `up and sent in ${Math.round(sent - began)} ms, checked in ${Math.round(performance.now() - sent)} ms`,
      );
    });
  }

  it('and at the end everything of all seeds is still so', async () => {
    const service = await operator.current();
    for (const world of worlds) await checkAnswers(service, world);
    const range = `start_time=${START}&end_time=${END}`;
    const { body } = await service.request('GET', `/events/monitoring?${range}`);
    const events = worlds.reduce((sum, { accepted }) => sum + eventsInEffect(accepted).length, 0);
    expect(body.total_count, 'raw events').to.equal(events);
    expect(worlds).to.be.an('array').that.is.not.empty;
  });
});
