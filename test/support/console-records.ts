/** Records of each kind for the pages of the console, made by the API: `const records = await seedRecords(app)`. */
import type { SomeAnswer } from './answers.ts';
import type { ConsoleApp } from './console.ts';
import { until } from './until.ts';

type WithId = { id: string };
export type SeededRecords = Record<
  | 'environment_id'
  | 'meter_id'
  | 'plan_id'
  | 'other_plan_id'
  | 'price_id'
  | 'customer_id'
  | 'subscription_id'
  | 'wallet_id'
  | 'invoice_id'
  | 'invoice_number'
  | 'line_id'
  | 'draft_id'
  | 'event_id'
  | 'uncounted_id'
  | 'endpoint_id',
  string
>;

/** Placeholders for the ids in titles of tests, because the titles exist before the records. */
export const PLACEHOLDERS = Object.fromEntries(
  [
    'meter',
    'plan',
    'other_plan',
    'price',
    'customer',
    'subscription',
    'wallet',
    'invoice',
    'line',
    'draft',
    'endpoint',
    'event',
    'uncounted',
  ].map((name) => [`${name}_id`, `{${name}}`]),
) as SeededRecords;

const DAY_MS = 86_400_000;
const TIERS: { up_to: number | null; unit_amount: string }[] = [
  { up_to: 1_000_000, unit_amount: '0.00003' },
  { up_to: 10_000_000, unit_amount: '0.00002' },
  { up_to: null, unit_amount: '0.000010223' },
];

/**
 * Two months of usage of one customer, whose first month has a final invoice and a late event. One event is voided. `name` is the
 * name of the customer, and also a value of events and metadata, and the reason of the void.
 */
export async function seedRecords(app: ConsoleApp, { name = 'Northwind Labs' } = {}): Promise<SeededRecords> {
  const begun = new Date(Date.now() - 40 * DAY_MS);
  const start = new Date(Date.UTC(begun.getUTCFullYear(), begun.getUTCMonth(), 1));
  const place = await createClock(app, start);
  const { send } = place;
  const counted = { event_name: 'completion', reset_usage: 'BILLING_PERIOD' };
  const meter = await send<WithId>('POST', '/meters', {
    ...counted,
    name: 'Input tokens',
    aggregation: { type: 'SUM', field: 'tokens_in' },
  });
  const requests = await send<WithId>('POST', '/meters', {
    ...counted,
    name: 'Requests',
    aggregation: { type: 'COUNT' },
  });
  const plan = await send<WithId>('POST', '/plans', { name: 'Scale', description: 'For steady traffic' });
  const other = await send<WithId>('POST', '/plans', { name: 'Starter' });
  const price = await seedPrices(place, plan.id, { meter_id: meter.id, requests_id: requests.id, fee: '500' });
  await seedPrices(place, other.id, { meter_id: meter.id, requests_id: requests.id, fee: '49' });
  const customer = await send<WithId>('POST', '/customers', {
    external_id: 'northwind',
    name,
    email: 'billing@northwind.example',
    metadata: { note: name },
  });
  const event_id = 'first-event';
  await send('POST', '/events/bulk', {
    events: [
      { event_id, event_name: 'completion', timestamp: new Date(start.getTime() + DAY_MS).toISOString() },
      ...Array.from({ length: 60 }, (_, hour) => ({
        event_id: `event-${hour}`,
        event_name: 'completion',
        timestamp: new Date(Date.now() - hour * 3_600_000 - 60_000).toISOString(),
      })),
    ].map((event, at) => ({
      ...event,
      external_customer_id: 'northwind',
      properties: { model: name, tokens_in: String(40_000 + 1_234 * at) },
    })),
  });
  const uncounted_id = 'misspelt-event';
  await send('POST', '/events', {
    event_id: uncounted_id,
    event_name: 'completoin',
    external_customer_id: 'northwind',
    properties: { model: name, tokens_in: '77' },
  });
  const subscription = await send<WithId>('POST', '/subscriptions', {
    customer_id: customer.id,
    plan_id: plan.id,
    currency: 'usd',
    billing_period: 'MONTHLY',
    billing_cycle: 'calendar',
    start_date: start.toISOString(),
  });
  const wallet = await send<WithId>('POST', '/wallets', { customer_id: customer.id, currency: 'usd', name: 'Prepaid' });
  await send('POST', `/wallets/${wallet.id}/top-up`, {
    amount: '750',
    credits_to_add: '750',
    transaction_reason: 'FREE_CREDIT_GRANT',
    idempotency_key: 'seed',
  });
  const { endpoint } = await send<{ endpoint: WithId }>('POST', '/webhooks/endpoints', {
    url: 'https://hooks.example.com/in',
  });
  const draft = await send<WithId>('POST', '/invoices', {
    customer_id: customer.id,
    currency: 'usd',
    invoice_type: 'ONE_OFF',
    amount_due: '120',
    total: '120',
    subtotal: '120',
    line_items: [{ display_name: name, amount: '120', quantity: '1' }],
    invoice_status: 'DRAFT',
  });
  await place.advance(new Date());
  await send('POST', '/events', {
    event_id: 'late-event',
    event_name: 'completion',
    external_customer_id: 'northwind',
    timestamp: new Date(start.getTime() + 2 * DAY_MS).toISOString(),
    properties: { model: name, tokens_in: '1000' },
  });
  await send('POST', '/events/event-59/void', { reason: name });
  const invoice = await findUsageInvoice(place, subscription.id);
  return {
    environment_id: place.environment_id,
    meter_id: meter.id,
    plan_id: plan.id,
    other_plan_id: other.id,
    price_id: price.id,
    customer_id: customer.id,
    subscription_id: subscription.id,
    wallet_id: wallet.id,
    invoice_id: invoice.id,
    invoice_number: invoice.invoice_number,
    line_id: invoice.line_items.find(({ meter_id }) => meter_id === meter.id)!.id,
    draft_id: draft.id,
    event_id,
    uncounted_id,
    endpoint_id: endpoint.id,
  };
}

async function seedPrices(
  { send }: ClockedPlace,
  plan_id: string,
  { meter_id, requests_id, fee }: { meter_id: string; requests_id: string; fee: string },
): Promise<WithId> {
  const terms = {
    entity_type: 'PLAN',
    entity_id: plan_id,
    currency: 'usd',
    billing_period: 'MONTHLY',
    start_date: '2020-01-01T00:00:00Z',
  };
  const usage = { ...terms, type: 'USAGE', invoice_cadence: 'ARREAR' };
  await send('POST', '/prices', {
    ...terms,
    display_name: 'Platform fee',
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    amount: fee,
    invoice_cadence: 'ADVANCE',
  });
  await send('POST', '/prices', {
    ...usage,
    display_name: 'Requests',
    meter_id: requests_id,
    billing_model: 'FLAT_FEE',
    amount: '0.01',
  });
  return send<WithId>('POST', '/prices', {
    ...usage,
    display_name: 'Input tokens',
    meter_id,
    billing_model: 'TIERED',
    tier_mode: 'SLAB',
    tiers: TIERS,
  });
}

type FoundInvoice = WithId & {
  invoice_number: string;
  invoice_status: string;
  line_items: { id: string; meter_id: string | null; amount: string }[];
};

/** The first final invoice with usage. */
async function findUsageInvoice({ send }: ClockedPlace, subscription_id: string): Promise<FoundInvoice> {
  const path = `/invoices?subscription_id=${subscription_id}&invoice_status=FINALIZED&limit=50`;
  const { items } = await send<{ items: FoundInvoice[] }>('GET', path);
  const found = items.find(({ line_items }) => line_items.some(({ meter_id }) => meter_id));
  if (!found) throw new Error(`no final invoice with usage among ${items.length}`);
  return found;
}

/** An environment with a test clock: the scheduler bills each minute, and an advance bills at once. */
export type ClockedPlace = {
  readonly environment_id: string;
  send<Body = SomeAnswer>(method: string, path: string, body?: unknown): Promise<Body>;
  /** Advances the clock, and waits until all due work is done. */
  advance(to: Date): Promise<void>;
  /** Subscribes the customer `northwind`, and returns the id of the subscription. */
  subscribe(plan_id: string): Promise<string>;
  /** Sends an event for each number of tokens. */
  useTokens(tokens: readonly string[], event_name?: string): Promise<void>;
};

export async function createClock(app: ConsoleApp, start: Date, name = 'A year'): Promise<ClockedPlace> {
  const environment = await app.send<WithId>('POST', '/environments', { name, type: 'development' });
  const send: ClockedPlace['send'] = (method, path, body) => app.send(method, path, body, environment.id);
  const clock = await send<WithId>('POST', '/test-clocks', { frozen_time: start.toISOString() });
  return {
    environment_id: environment.id,
    send,
    advance: async (to) => {
      await send('POST', `/test-clocks/${clock.id}/advance`, { frozen_time: to.toISOString() });
      await until('the clock has advanced', () => isClockReady(send, clock.id), 60_000, 50);
    },
    subscribe: async (plan_id) => {
      const customer = await send<WithId>('POST', '/customers', { external_id: 'northwind', name: 'Northwind Labs' });
      const terms = { currency: 'usd', billing_period: 'MONTHLY', billing_cycle: 'calendar' };
      const body = { ...terms, customer_id: customer.id, plan_id, start_date: start.toISOString() };
      return (await send<WithId>('POST', '/subscriptions', body)).id;
    },
    useTokens: async (tokens, event_name = 'completion') => {
      const events = tokens.map((tokens_in, at) => ({
        event_id: `${event_name}-${at}`,
        event_name,
        external_customer_id: 'northwind',
        timestamp: new Date(start.getTime() + (at + 1) * 60_000).toISOString(),
        properties: { model: 'wren-2', tokens_in },
      }));
      await send('POST', '/events/bulk', { events });
    },
  };
}

type Clock = { test_clock_status: string; failure?: unknown };

async function isClockReady(send: ClockedPlace['send'], id: string): Promise<boolean> {
  const { test_clock_status, failure } = await send<Clock>('GET', `/test-clocks/${id}`);
  if (test_clock_status === 'failed') throw new Error(JSON.stringify(failure));
  return test_clock_status === 'ready';
}

type UsagePlan = { plan_id: string; meter_id: string };

/** A plan with a fee, if there is one, and input tokens at 30 a million, then 20. */
export async function createUsagePlan(
  { send }: Pick<ClockedPlace, 'send'>,
  { name, fee, is_priced = true }: { name: string; fee?: string; is_priced?: boolean },
): Promise<UsagePlan> {
  const meter = await send<WithId>('POST', '/meters', {
    name: 'Input tokens',
    event_name: 'completion',
    reset_usage: 'BILLING_PERIOD',
    aggregation: { type: 'SUM', field: 'tokens_in' },
  });
  const plan = await send<WithId>('POST', '/plans', { name });
  const terms = { entity_type: 'PLAN', entity_id: plan.id, currency: 'usd', billing_period: 'MONTHLY' };
  if (fee !== undefined) {
    const flat = { type: 'FIXED', billing_model: 'FLAT_FEE', invoice_cadence: 'ADVANCE' };
    await send('POST', '/prices', { ...terms, ...flat, display_name: 'Platform fee', amount: fee });
  }
  if (is_priced) {
    const graduated = { type: 'USAGE', billing_model: 'TIERED', tier_mode: 'SLAB', invoice_cadence: 'ARREAR' };
    const tiers = TIERS.slice(0, 1).concat({ up_to: null, unit_amount: '0.00002' });
    await send('POST', '/prices', { ...terms, ...graduated, display_name: 'Input tokens', meter_id: meter.id, tiers });
  }
  return { plan_id: plan.id, meter_id: meter.id };
}

/** A customer with usage in March 2026, which is invoiced unless `is_billed` is false. */
export async function createBilledPlace(
  app: ConsoleApp,
  { tokens, event_name, is_billed = true }: { tokens: readonly string[]; event_name?: string; is_billed?: boolean },
): Promise<ClockedPlace & { invoice_number: string }> {
  const place = await createClock(app, new Date('2026-03-01T00:00:00Z'));
  const { plan_id } = await createUsagePlan(place, { name: 'Scale' });
  const subscription_id = await place.subscribe(plan_id);
  await place.useTokens(tokens, event_name);
  if (!is_billed) return { ...place, invoice_number: '' };
  await place.advance(new Date('2026-04-02T00:00:00Z'));
  const { invoice_number } = await findUsageInvoice(place, subscription_id);
  return { ...place, invoice_number };
}
