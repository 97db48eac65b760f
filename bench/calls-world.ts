/** The tenant that bench/calls.ts calls, and the mix of calls: the number of each kind in a hundred. */
import { DAY_MS } from '../core/foundation/time/durations.ts';
import type { Due, RequestInput } from './due-requests.ts';
import type { Service } from './processes.ts';
import type { Random } from './workload.ts';

export type World = {
  readonly customers: number;
  readonly plan_ids: readonly string[];
  readonly feature_ids: readonly string[];
  readonly price_ids: readonly string[];
  readonly subscription_ids: readonly string[];
  readonly endpoint_id: string;
};

const PLANS = 20;
const SUBSCRIPTIONS = 200;
const PRICE = {
  entity_type: 'PLAN',
  type: 'FIXED',
  price_unit_type: 'FIAT',
  currency: 'usd',
  amount: '10',
  billing_model: 'FLAT_FEE',
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  billing_cadence: 'RECURRING',
  invoice_cadence: 'ADVANCE',
};

/** Records that exist by the thousand are inserted into Postgres directly; all others are created by the API. */
export async function makeWorld(service: Service, customers: number): Promise<World> {
  await service.call({ what: 'postgres', sql: customersOf(customers) });
  await service.call({ what: 'postgres', sql: 'vacuum (analyze) customers' });
  const made = async (path: string, body: object) => (await service.post<{ id: string }>(path, body)).id;
  const [plan_ids, feature_ids, price_ids, subscription_ids]: string[][] = [[], [], [], []];
  for (let index = 0; index < PLANS; index++) {
    const plan = await made('/plans', { name: `Plan ${index}`, lookup_key: `plan_${index}` });
    const feature = await made('/features', { name: `Feature ${index}`, type: 'boolean' });
    price_ids!.push(await made('/prices', { ...PRICE, entity_id: plan }));
    await made('/entitlements', { plan_id: plan, feature_id: feature, feature_type: 'boolean', is_enabled: true });
    plan_ids!.push(plan);
    feature_ids!.push(feature);
  }
  for (let index = 0; index < SUBSCRIPTIONS; index++)
    subscription_ids!.push(await made('/subscriptions', subscriptionOf(index % customers, plan_ids![index % PLANS]!)));
  const { endpoint } = await service.post<{ endpoint: { id: string } }>('/webhooks/endpoints', {
    url: 'https://example.com/hook',
    event_names: ['invoice.update.voided'],
  });
  return {
    customers,
    plan_ids: plan_ids!,
    feature_ids: feature_ids!,
    price_ids: price_ids!,
    subscription_ids: subscription_ids!,
    endpoint_id: endpoint.id,
  };
}

function customersOf(count: number): string {
  return `insert into customers (id, tenant_id, environment_id, external_id, name, email, address_country, metadata, created_at)
    select 'cust_bench_' || lpad(i::text, 6, '0'), tenant_id, id, 'customer_' || i, 'Customer ' || i,
           'billing' || i || '@example.com', (array['DE', 'FR', 'NL'])[1 + i % 3], jsonb_build_object('region', 'r' || i % 500),
           now() - make_interval(secs => i)
      from generate_series(0, ${count - 1}) i, (select tenant_id, id from environments order by created_at, id limit 1) first`;
}

function subscriptionOf(customer: number, plan_id: string) {
  const terms = { currency: 'usd', billing_period: 'MONTHLY', billing_cadence: 'RECURRING', billing_period_count: 1 };
  const start_date = new Date(Date.now() - DAY_MS).toISOString();
  return { ...terms, external_customer_id: `customer_${customer}`, plan_id, start_date, billing_cycle: 'anniversary' };
}

type Picked = World & { number: number; customer: number; one(of: readonly string[]): string };

/** Calls of each kind in a hundred, and the request of the kind. */
const CALLS: Record<string, [share: number, asked: (picked: Picked) => RequestInput]> = {
  'customer by id': [10, ({ customer }) => get(`/customers/cust_bench_${padded(customer)}`)],
  'customer by external id': [6, ({ customer }) => get(`/customers/external/customer_${customer}`)],
  'customers, a page': [5, () => get('/customers?limit=20')],
  'customers, a deep page by name': [
    2,
    ({ customers }) => get(`/customers?limit=20&sort=name&offset=${Math.floor(customers / 2)}`),
  ],
  'customers, searched': [5, ({ customer }) => post('/customers/search', { external_ids: [`customer_${customer}`] })],
  'customers by metadata': [
    3,
    ({ customer }) => post('/customers/search', { metadata: { region: `r${customer % 500}` } }),
  ],
  'customer made': [6, ({ number }) => post('/customers', { external_id: `new_${number}`, name: 'New' })],
  'customer changed': [
    6,
    ({ customer, number }) => put(`/customers/cust_bench_${padded(customer)}`, { name: `Customer ${number}` }),
  ],
  'entitlements of a customer': [
    8,
    ({ customer }) => get(`/customers/cust_bench_${padded(customer % SUBSCRIPTIONS)}/entitlements`),
  ],
  'plan by id': [6, ({ one, plan_ids }) => get(`/plans/${one(plan_ids)}`)],
  'plans, a page with parts': [4, () => post('/plans/search', { limit: 20, expand: 'prices,entitlements.features' })],
  'plan changed': [
    3,
    ({ one, plan_ids, number }) => put(`/plans/${one(plan_ids)}`, { description: `As of ${number}` }),
  ],
  'feature made': [
    3,
    ({ number }) => post('/features', { name: `Made ${number}`, lookup_key: `made_${number}`, type: 'boolean' }),
  ],
  'features, searched': [3, () => post('/features/search', { name_contains: 'Feature 1', limit: 20 })],
  'price by id': [4, ({ one, price_ids }) => get(`/prices/${one(price_ids)}`)],
  'prices of a plan': [4, ({ one, plan_ids }) => get(`/prices?plan_ids=${one(plan_ids)}`)],
  'entitlements of a plan': [4, ({ one, plan_ids }) => get(`/plans/${one(plan_ids)}/entitlements`)],
  'subscription by id': [5, ({ one, subscription_ids }) => get(`/subscriptions/${one(subscription_ids)}`)],
  'subscriptions, a page': [3, () => get('/subscriptions?limit=20&expand=customer')],
  'subscription made': [
    3,
    ({ one, plan_ids, customer }) => post('/subscriptions', subscriptionOf(customer, one(plan_ids))),
  ],
  'audit log, a page': [3, () => get('/audit-logs?limit=20')],
  'webhook endpoints': [2, () => get('/webhooks/endpoints')],
  'webhook endpoint changed': [
    2,
    ({ endpoint_id, number }) => put(`/webhooks/endpoints/${endpoint_id}`, { description: `As of ${number}` }),
  ],
};
export const KINDS = Object.keys(CALLS);

const padded = (customer: number) => String(customer).padStart(6, '0');
const get = (path: string): RequestInput => ({ method: 'GET', path: `/v1${path}` });
const post = (path: string, body: object): RequestInput => ({ method: 'POST', path: `/v1${path}`, body });
const put = (path: string, body: object): RequestInput => ({ method: 'PUT', path: `/v1${path}`, body });

/** Counts created names, so that no name occurs twice in all runs. */
let made = 0;

export function nextCall(world: World, random: Random): () => Due<string> {
  const kinds = KINDS.flatMap((kind) => Array<string>(CALLS[kind]![0]).fill(kind));
  const at = (count: number) => Math.floor(random() * count);
  return () => {
    const kind = kinds[at(kinds.length)]!;
    const one = (of: readonly string[]) => of[at(of.length)]!;
    return { kind, request: CALLS[kind]![1]({ ...world, number: ++made, customer: at(world.customers), one }) };
  };
}
