/** A small company for request benchmarks: 200 customers with subscriptions and a history of events, and a request of each kind. */
import { HOUR_MS } from '../core/foundation/time/durations.ts';
import type { RequestInput } from './due-requests.ts';
import { CUSTOMERS, makeMixedWorld } from './mixed-load.ts';
import { type EmbeddedService, startGenerator } from './processes.ts';
import { EVENT_NAMES, type Random } from './workload.ts';

export type RequestsWorld = {
  readonly meter_ids: readonly string[];
  readonly subscription_ids: readonly string[];
  readonly customer_ids: readonly string[];
  readonly event_ids: readonly string[];
  readonly plan_id: string;
};

export const HISTORY_EVENTS = 100_000;

export async function makeRequestsWorld(service: EmbeddedService, total = HISTORY_EVENTS): Promise<RequestsWorld> {
  const world = await makeMixedWorld(service);
  const generator = await startGenerator();
  const from_ms = Date.now() - 20 * HOUR_MS;
  const common = { url: service.url, api_key: service.api_key, size: 500, connections: 4, seed: 1, total };
  await (await generator.prepare({ ...common, workload: { customers: CUSTOMERS, from_ms, span_ms: 20 * HOUR_MS } }))();
  generator.stop();
  await service.waitUntilMerged();
  const customers = await service.call<{ id: string }[]>({
    what: 'postgres',
    sql: `select id from customers where external_id like 'customer\\_%' order by external_id`,
  });
  const plans = await service.call<{ id: string }[]>({ what: 'postgres', sql: 'select id from plans limit 1' });
  const events = await service.call<{ id: string }[]>({
    what: 'sql',
    sql: 'select event_id as id from events limit 1000',
  });
  return {
    ...world,
    customer_ids: customers.map(({ id }) => id),
    event_ids: events.map(({ id }) => id),
    plan_id: plans[0]!.id,
  };
}

type BuildRequest = (world: RequestsWorld, random: Random) => RequestInput;

const get = (path: string): RequestInput => ({ method: 'GET', path: `/v1${path}` });
const post = (path: string, body: object): RequestInput => ({ method: 'POST', path: `/v1${path}`, body });
const pick = <T>(values: readonly T[], random: Random): T => values[Math.floor(random() * values.length)]!;
const anyCustomer = (random: Random) => `customer_${Math.floor(random() * CUSTOMERS)}`;
const untilNow = () => ({
  start_time: new Date(Date.now() - 19.5 * HOUR_MS).toISOString(),
  end_time: new Date().toISOString(),
});
let made = 0;
const event = (random: Random) => ({
  event_name: EVENT_NAMES[0],
  external_customer_id: anyCustomer(random),
  properties: { tokens: 5 },
});

export const REQUESTS: Record<string, BuildRequest> = {
  roles: () => get('/rbac/roles'),
  customer: ({ customer_ids }, random) => get(`/customers/${pick(customer_ids, random)}`),
  customers: () => get('/customers?limit=20'),
  'new customer': (_, random) =>
    post('/customers', { external_id: `new_${Date.now()}_${random()}_${made++}`, name: 'bench' }),
  event: (_, random) => post('/events', event(random)),
  'bulk of 20': (_, random) => post('/events/bulk', { events: Array.from({ length: 20 }, () => event(random)) }),
  usage: ({ meter_ids }, random) =>
    post('/events/usage/meter', {
      external_customer_id: anyCustomer(random),
      meter_id: pick(meter_ids, random),
      ...untilNow(),
    }),
  'events of a customer': (_, random) => get(`/events?external_customer_id=${anyCustomer(random)}`),
  'one event': ({ event_ids }, random) => get(`/events/${pick(event_ids, random)}`),
  analytics: (_, random) => post('/events/analytics', { external_customer_id: anyCustomer(random), ...untilNow() }),
  preview: ({ subscription_ids }, random) =>
    post('/invoices/preview', { subscription_id: pick(subscription_ids, random) }),
  'new subscription': ({ plan_id }, random) =>
    post('/subscriptions', {
      external_customer_id: anyCustomer(random),
      plan_id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_cadence: 'RECURRING',
      billing_period_count: 1,
      billing_cycle: 'anniversary',
      start_date: new Date().toISOString(),
    }),
};

/** A query of the usage of each customer and meter, and a preview of each subscription: their later answers use cached usage. */
export function listCachedRequests(world: RequestsWorld): RequestInput[] {
  const usage = world.meter_ids.flatMap((meter_id) =>
    Array.from({ length: CUSTOMERS }, (_, n) =>
      post('/events/usage/meter', { external_customer_id: `customer_${n}`, meter_id, ...untilNow() }),
    ),
  );
  return [...usage, ...world.subscription_ids.map((subscription_id) => post('/invoices/preview', { subscription_id }))];
}
