/**
 * The mixed load of a small company: a hundred requests a second from one tenant with 200 customers. Most of them query usage until now.
 * One customer sends 500 events a second meanwhile.
 */
import { Agent } from 'node:http';
import { groupBy } from '../core/foundation/group-by.ts';
import { HOUR_MS } from '../core/foundation/time/durations.ts';
import { type Answered as AnsweredOf, percentiles, type RequestInput, send, sendWhenDue } from './due-requests.ts';
import { pause, type Service, startGenerator, startService } from './processes.ts';
import { claim, fixed, flag, hasFlag, quantile, say } from './report.ts';
import { EVENT_NAMES, type Random, seeded } from './workload.ts';

const MUST_P99_MS = 250;
/** Warm-up as in the other benchmarks: code is compiled, connections are open, pages are cached. It is reported separately. */
const WARM_UP_S = 5;
export const CUSTOMERS = 200;
const HOT_PER_SECOND = 500;
const JITTER_MS = 60_000;

export async function run(): Promise<void> {
  const [events, seconds, rate] = [flag('events', 300_000), flag('seconds', 60), flag('rate', 100)];
  const service = await startService();
  const generator = await startGenerator();
  try {
    const world = await makeMixedWorld(service);
    const common = { url: service.url, api_key: service.api_key, size: 500, connections: 4 };
    const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const span_ms = Math.max(Date.now() - JITTER_MS - hour, JITTER_MS);
    const from_ms = Date.now() - JITTER_MS - span_ms;
    const behind = { ...common, seed: 1, total: events, workload: { customers: CUSTOMERS, from_ms, span_ms } };
    await (await generator.prepare(behind))();
    await service.waitUntilMerged();
    if (hasFlag('kinds')) return await costOfKinds(service, world);
    const hot = { customers: 1, from_ms: Date.now() - JITTER_MS, span_ms: (seconds + WARM_UP_S) * 1000 };
    const total = HOT_PER_SECOND * (seconds + WARM_UP_S);
    const arriving = { ...common, size: 50, connections: 1, seed: 2, total };
    const sending = (await generator.prepare({ ...arriving, rate: HOT_PER_SECOND, workload: hot }))();
    const first = (await load(service, world, { seconds: WARM_UP_S, rate, seed: 4 })).map(({ ms }) => ms);
    say(`  the first ${WARM_UP_S} s of a service that has just started: ${percentiles(first)}`);
    const cpu = service.cpu();
    const answers = await load(service, world, { seconds, rate, seed: 3 });
    report(answers);
    const used = service.cpu();
    const of = (part: keyof typeof cpu) => `${fixed(((used[part] - cpu[part]) * 1000) / answers.length)} ms`;
    say(
      `  CPU per request, what arrives included: ${of('total')}, ClickHouse ${of('clickhouse')}, Postgres ${of('postgres')}`,
    );
    await sending;
  } finally {
    generator.stop();
    await service.stop();
  }
}

type World = { readonly meter_ids: readonly string[]; readonly subscription_ids: readonly string[] };

export async function makeMixedWorld(service: Service): Promise<World> {
  const plan = await service.post<{ id: string }>('/plans', { name: 'bench' });
  const meter_ids: string[] = [];
  for (const [index, field] of [undefined, 'tokens', 'duration_ms'].entries()) {
    const aggregation = field === undefined ? { type: 'COUNT' } : { type: 'SUM', field };
    const meter = { name: 'bench', event_name: EVENT_NAMES[index], aggregation, reset_usage: 'BILLING_PERIOD' };
    const { id } = await service.post<{ id: string }>('/meters', meter);
    await service.post('/features', { name: `feature ${index}`, type: 'metered', meter_id: id });
    await service.post('/prices', { ...PRICE, entity_id: plan.id, meter_id: id });
    meter_ids.push(id);
  }
  const subscription_ids: string[] = [];
  for (let index = 0; index < CUSTOMERS; index++) {
    const external_customer_id = `customer_${index}`;
    await service.post('/customers', { external_id: external_customer_id, name: 'bench' });
    const terms = { currency: 'usd', billing_period: 'MONTHLY', billing_cadence: 'RECURRING', billing_period_count: 1 };
    const start_date = new Date(Date.now() - 24 * HOUR_MS).toISOString();
    const asked = { ...terms, external_customer_id, plan_id: plan.id, start_date, billing_cycle: 'anniversary' };
    subscription_ids.push((await service.post<{ id: string }>('/subscriptions', asked)).id);
  }
  const open = `select count(*)::int as n from meter_versions where state <> 'live'`;
  while ((await service.call<{ n: number }[]>({ what: 'postgres', sql: open }))[0]!.n > 0) await pause(100);
  return { meter_ids, subscription_ids };
}

const PRICE = {
  entity_type: 'PLAN',
  type: 'USAGE',
  price_unit_type: 'FIAT',
  currency: 'usd',
  amount: '0.001',
  billing_model: 'FLAT_FEE',
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  billing_cadence: 'RECURRING',
  invoice_cadence: 'ARREAR',
  start_date: '1970-01-01T00:00:00Z',
};

type Kind = 'usage' | 'analytics' | 'subscription usage' | 'preview' | 'events' | 'ingest' | 'records';

/** Number of requests of each kind in a hundred. */
const MIX: Record<Kind, number> = {
  usage: 30,
  analytics: 15,
  'subscription usage': 10,
  preview: 5,
  events: 10,
  ingest: 15,
  records: 15,
};

function askedOf(kind: Kind, random: Random, { meter_ids, subscription_ids }: World): RequestInput {
  // A fifth of the requests are about the customer that sends the events.
  const customer = random() < 0.2 ? 0 : Math.floor(random() * CUSTOMERS);
  const external_customer_id = `customer_${customer}`;
  const meter_id = meter_ids[Math.floor(random() * meter_ids.length)];
  const subscription_id = subscription_ids[customer]!;
  const now = new Date();
  const start_time = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())).toISOString();
  const until_now = { start_time, end_time: now.toISOString() };
  const asked: Record<Kind, RequestInput> = {
    usage: post('/events/usage/meter', { external_customer_id, meter_id, ...until_now }),
    analytics: post('/events/analytics', { external_customer_id, ...until_now }),
    'subscription usage': post('/subscriptions/usage', { subscription_id }),
    preview: post('/invoices/preview', { subscription_id }),
    events: post('/events/query', { external_customer_id, ...until_now, page_size: 20 }),
    ingest: post('/events', { event_name: EVENT_NAMES[0], external_customer_id, properties: { tokens: 5 } }),
    records: { method: 'GET', path: `/v1/subscriptions/${subscription_id}` },
  };
  return asked[kind];
}

function post(path: string, body: object): RequestInput {
  return { method: 'POST', path: `/v1${path}`, body };
}

type Answered = AnsweredOf<Kind>;
type Load = { readonly seconds: number; readonly rate: number; readonly seed: number };

function load(service: Service, world: World, { seconds, rate, seed }: Load): Promise<Answered[]> {
  const random = seeded(seed);
  const kinds = Object.entries(MIX).flatMap(([kind, count]) => Array<Kind>(count).fill(kind as Kind));
  return sendWhenDue(service, { seconds, rate }, () => {
    const kind = kinds[Math.floor(random() * kinds.length)]!;
    return { kind, request: askedOf(kind, random, world) };
  });
}

/** `--kinds`: measures the cost of each kind of request, one after the other, while no events arrive. */
async function costOfKinds(service: Service, world: World): Promise<void> {
  const random = seeded(3);
  const agent = new Agent({ keepAlive: true });
  const count = flag('count', 100);
  for (const kind of Object.keys(MIX) as Kind[]) {
    const before = service.cpu();
    const took: number[] = [];
    for (let n = 0; n < count; n++) took.push((await send(service, agent, askedOf(kind, random, world))).ms);
    const after = service.cpu();
    const of = (part: keyof typeof before) => `${fixed(((after[part] - before[part]) * 1000) / count)} ms`;
    const cpu = `CPU ${of('total')}, ClickHouse ${of('clickhouse')}, Postgres ${of('postgres')}`;
    say(`  ${kind}: p50 ${fixed(quantile(took, 0.5))} ms; ${cpu}`);
  }
  agent.destroy();
}

function report(answers: readonly Answered[]): void {
  const refused = answers.filter(({ status }) => status >= 400);
  for (const kind of Object.keys(MIX) as Kind[]) {
    const took = answers.filter((one) => one.kind === kind).map(({ ms }) => ms);
    say(`  ${kind}: ${percentiles(took)}, of ${took.length}`);
  }
  const tens = groupBy(answers, ({ second }) => Math.floor(second / 10));
  const byTens = [...tens.values()].map((some) =>
    quantile(
      some.map(({ ms }) => ms),
      0.99,
    ),
  );
  say(`  p99 of each ten seconds: ${byTens.map((ms) => fixed(ms)).join(', ')} ms`);
  for (const status of new Set(refused.map((one) => one.status)))
    say(`  refused with ${status}: ${refused.filter((one) => one.status === status).length}`);
  const all = answers.map(({ ms }) => ms);
  const [p50, p99] = [quantile(all, 0.5), quantile(all, 0.99)];
  claim(
    'mixed load',
    `p50 ${fixed(p50)} ms, p99 ${fixed(p99)} ms, the slowest ${fixed(Math.max(...all))} ms, refused ${refused.length} of ${answers.length}`,
    `p99 ${MUST_P99_MS} ms`,
    p99 <= MUST_P99_MS && refused.length === 0,
  );
}
