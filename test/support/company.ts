/**
 * A company that sells a language model by the token, with ten customers and three months of usage: for the pictures of the console, and
 * for its benchmark. `const company = await seedCompany(service, new Date())`.
 */
import { until } from './until.ts';

type CompanyDoor = { readonly url: string; readonly api_key: string };
type Sent<Body> = (method: string, path: string, body?: unknown) => Promise<Body>;

export type Company = {
  readonly environment_id: string;
  readonly scale: { readonly plan_id: string; readonly tiered_price_id: string };
  /** A finalized invoice of the largest customer, and its line with the most tiers. */
  readonly invoice_id: string;
  readonly line_id: string;
  readonly customer_id: string;
  readonly input_meter_id: string;
  /** Sends events of this moment. */
  sendNow(count: number): Promise<SeededEvent[]>;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MONTHS_BEFORE = 2;
const BODY_EVENTS = 500;
const WAIT_MS = 240_000;

type CompanyCustomer = {
  external_id: string;
  name: string;
  email: string;
  plan: 'Scale' | 'Starter';
  /** Share of the calls. */
  weight: number;
};

/** Places in the list of invoices, the newest first. */
const UNPAID = new Set([1, 6]);
const LAST_HOUR_EVENTS = 700;
const SMALL = 0.02;

const CUSTOMERS: readonly CompanyCustomer[] = [
  customer('northwind', 'Northwind Labs', 'Scale', 24),
  customer('halden', 'Halden Robotics GmbH', 'Scale', 18),
  customer('kestrel', 'Kestrel Aviation', 'Scale', 14),
  customer('tidewater', 'Tidewater Logistics', 'Scale', 11),
  customer('lumen', 'Lumen & Söhne', 'Scale', 9),
  customer('sakura', 'Sakura Data K.K.', 'Scale', 8),
  customer('marlow', 'Marlow & Finch LLP', 'Starter', 6),
  customer('ostrava', 'Ostrava Medical', 'Starter', 4),
  customer('bluebird', 'Bluebird Pharmacy', 'Starter', 4),
  customer('cormorant', 'Cormorant Studios', 'Starter', 2),
];

function customer(external_id: string, name: string, plan: 'Scale' | 'Starter', weight: number): CompanyCustomer {
  return { external_id, name, email: `accounts@${external_id}.example`, plan, weight };
}

const FEES = { Scale: '500', Starter: '49' } as const;
const TIERS = [
  { up_to: 1_000_000, unit_amount: '0.00003' },
  { up_to: 10_000_000, unit_amount: '0.00002' },
  { up_to: null, unit_amount: '0.0000125' },
];

export async function seedCompany(door: CompanyDoor, now: Date): Promise<Company> {
  const send: Sent<never> = (method, path, body) => request(door, { method, path, body }) as Promise<never>;
  const create = async (path: string, body: object) => ((await send('POST', path, body)) as { id: string }).id;
  await send('PUT', '/tenants/update', { name: 'Wren' });
  await send('PUT', '/settings/invoice_config', { value: { prefix: 'WREN', finalization_delay_seconds: 0 } });
  const meters = await createMeters(create);
  const plans = {
    Scale: await createPlan('Scale', meters, create),
    Starter: await createPlan('Starter', meters, create),
  };
  const ids = new Map<string, string>();
  for (const { external_id, name, email } of CUSTOMERS)
    ids.set(external_id, await create('/customers', { external_id, name, email }));

  const begin = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - MONTHS_BEFORE, 1));
  const world = new EventMaker();
  const events = world.listEvents(begin, now);
  for (let at = 0; at < events.length; at += BODY_EVENTS)
    await send('POST', '/events/bulk', { events: events.slice(at, at + BODY_EVENTS) });
  await until(
    'the events are counted',
    async () => {
      const { consumption_lag } = (await send('GET', '/events/monitoring')) as { consumption_lag: number };
      return consumption_lag === 0;
    },
    WAIT_MS,
    200,
  );
  // The usage is counted before the subscriptions, so that no invoice is made without it.
  for (const { external_id, plan } of CUSTOMERS)
    await create('/subscriptions', {
      customer_id: ids.get(external_id),
      plan_id: plans[plan].plan_id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_cycle: 'calendar',
      start_date: begin.toISOString(),
    });
  for (const [external_id, credits] of [
    ['kestrel', '2500'],
    ['lumen', '750'],
  ] as const)
    await grant(external_id, credits);
  const { invoice_id, line_id } = await settleInvoices(send, {
    customer_id: ids.get('northwind')!,
    meter_id: meters.input,
  });
  const { environments } = (await send('GET', '/environments')) as { environments: { id: string }[] };
  return {
    environment_id: environments[0]!.id,
    scale: plans.Scale,
    invoice_id,
    line_id,
    customer_id: ids.get('northwind')!,
    input_meter_id: meters.input,
    sendNow: async (count) => {
      const sent = Array.from({ length: count }, () => world.createEvent(new Date()));
      await send('POST', '/events/bulk', { events: sent });
      return sent;
    },
  };

  async function grant(external_id: string, credits: string): Promise<void> {
    const wallet = await create('/wallets', {
      customer_id: ids.get(external_id),
      currency: 'usd',
      name: 'Prepaid credits',
    });
    const amounts = { amount: credits, credits_to_add: credits };
    const body = { ...amounts, transaction_reason: 'FREE_CREDIT_GRANT', idempotency_key: external_id };
    await send('POST', `/wallets/${wallet}/top-up`, body);
  }
}

type CompanyMeters = { input: string; output: string; requests: string; storage: string };
type CreateRecord = (path: string, body: object) => Promise<string>;

async function createMeters(create: CreateRecord): Promise<CompanyMeters> {
  const meter = (name: string, event_name: string, aggregation: object) =>
    create('/meters', { name, event_name, aggregation, reset_usage: 'BILLING_PERIOD' });
  return {
    input: await meter('Input tokens', 'completion', { type: 'SUM', field: 'tokens_in' }),
    output: await meter('Output tokens', 'completion', { type: 'SUM', field: 'tokens_out' }),
    requests: await meter('Requests', 'completion', { type: 'COUNT' }),
    storage: await meter('Storage', 'storage_level', { type: 'MAX', field: 'gb' }),
  };
}

async function createPlan(name: 'Scale' | 'Starter', meters: CompanyMeters, create: CreateRecord) {
  const description = name === 'Scale' ? 'For teams with steady traffic' : 'For a first product';
  const plan_id = await create('/plans', { name, description });
  const terms = {
    entity_type: 'PLAN',
    entity_id: plan_id,
    currency: 'usd',
    billing_period: 'MONTHLY',
    start_date: '2020-01-01T00:00:00Z',
  };
  const usage = { ...terms, type: 'USAGE', invoice_cadence: 'ARREAR' };
  const flat = { ...usage, billing_model: 'FLAT_FEE' };
  const fee = { type: 'FIXED', billing_model: 'FLAT_FEE', amount: FEES[name], invoice_cadence: 'ADVANCE' };
  await create('/prices', { ...terms, ...fee, display_name: 'Platform fee' });
  const tiered = { billing_model: 'TIERED', tier_mode: 'SLAB', tiers: TIERS };
  const tiered_price_id = await create('/prices', {
    ...usage,
    ...tiered,
    display_name: 'Input tokens',
    meter_id: meters.input,
  });
  await create('/prices', { ...flat, display_name: 'Output tokens', meter_id: meters.output, amount: '0.00006' });
  await create('/prices', { ...flat, display_name: 'Storage', meter_id: meters.storage, amount: '0.25' });
  return { plan_id, tiered_price_id };
}

type SeededEvent = {
  event_id: string;
  event_name: string;
  external_customer_id: string;
  timestamp: string;
  properties: Record<string, string>;
};

/** Makes the same events each time: more on working days and by daylight, and a little more each week. */
class EventMaker {
  #state = 42;
  #made = 0;

  listEvents(begin: Date, end: Date): SeededEvent[] {
    const events: SeededEvent[] = [];
    for (let hour = begin.getTime(); hour < end.getTime(); hour += HOUR_MS) {
      const at = new Date(hour);
      const isWorkday = at.getUTCDay() % 6 !== 0;
      const daylight = 1 + Math.sin(((at.getUTCHours() - 7) / 24) * 2 * Math.PI);
      const growth = 1 + (hour - begin.getTime()) / (180 * DAY_MS);
      const calls = Math.round((isWorkday ? 3 : 1) * daylight * growth + this.#draw());
      for (let call = 0; call < calls; call++) {
        const moment = hour + Math.floor(this.#draw() * HOUR_MS);
        if (moment < end.getTime()) events.push(this.createEvent(new Date(moment)));
      }
      if (at.getUTCHours() === 3) events.push(...CUSTOMERS.map((one) => this.#createLevel(one, { at, growth })));
    }
    // The last hour is dense, because home shows it by the minute; its calls are small, so that the day is like any other.
    for (let call = 0; call < LAST_HOUR_EVENTS; call++)
      events.push(this.createEvent(new Date(end.getTime() - Math.floor(this.#draw() * HOUR_MS)), SMALL));
    return [...events, ...this.#listFaults(end)];
  }

  createEvent(at: Date, size = 1): SeededEvent {
    const isMini = this.#draw() > 0.7;
    const properties = {
      model: isMini ? 'wren-2-mini' : 'wren-2',
      region: this.#draw() < 0.6 ? 'eu-1' : 'us-1',
      tokens_in: String(Math.floor(size * (4_000 + this.#draw() * (isMini ? 40_000 : 140_000)))),
      tokens_out: String(Math.floor(size * (600 + this.#draw() * 14_000))),
    };
    return this.#event('completion', this.#pickCustomer(), { at, properties });
  }

  #createLevel({ external_id, weight }: CompanyCustomer, { at, growth }: { at: Date; growth: number }): SeededEvent {
    const gb = (weight * 9 * growth + this.#draw() * 12).toFixed(1);
    return this.#event('storage_level', external_id, { at, properties: { gb } });
  }

  /** A misspelt name, and a count that is no number: both stand among the events that are not counted. */
  #listFaults(end: Date): SeededEvent[] {
    const before = (minutes: number) => new Date(end.getTime() - minutes * 60_000);
    const properties = { model: 'wren-2', region: 'eu-1', tokens_in: '1840', tokens_out: '310' };
    return [
      ...[12, 31, 47].map((minutes) => this.#event('completoin', 'tidewater', { at: before(minutes), properties })),
      this.#event('completion', 'kestrel', { at: before(22), properties: { ...properties, tokens_in: '12k' } }),
    ];
  }

  #event(
    event_name: string,
    external_customer_id: string,
    { at, properties }: { at: Date; properties: Record<string, string> },
  ): SeededEvent {
    const event_id = `evt_${at.getTime().toString(36)}_${this.#made++}`;
    return { event_id, event_name, external_customer_id, timestamp: at.toISOString(), properties };
  }

  #pickCustomer(): string {
    let left = this.#draw() * CUSTOMERS.reduce((sum, { weight }) => sum + weight, 0);
    return (CUSTOMERS.find(({ weight }) => (left -= weight) < 0) ?? CUSTOMERS[0]!).external_id;
  }

  /** The generator of Park and Miller. */
  #draw(): number {
    this.#state = (this.#state * 16_807) % 2_147_483_647;
    return this.#state / 2_147_483_647;
  }
}

type SeededInvoice = {
  id: string;
  customer_id: string;
  invoice_status: string;
  amount_remaining: string;
  period_end: string | null;
  line_items: { id: string; meter_id: string | null }[];
};

/** Waits until the scheduler has billed the ended periods; most of the invoices are then paid. */
async function settleInvoices(
  send: Sent<never>,
  { customer_id, meter_id }: { customer_id: string; meter_id: string },
): Promise<{ invoice_id: string; line_id: string }> {
  const list = async () => ((await send('GET', '/invoices?limit=200')) as { items: SeededInvoice[] }).items;
  // The fee of each month, and the usage of the ended ones, which stand on the invoice of the fee that follows.
  const expected = CUSTOMERS.length * (MONTHS_BEFORE + 1);
  await until(
    'the ended periods are billed',
    async () => {
      const invoices = await list();
      return invoices.length >= expected && invoices.every(({ invoice_status }) => invoice_status !== 'DRAFT');
    },
    WAIT_MS,
    1_000,
  );
  const invoices = await list();
  for (const [index, { id, amount_remaining }] of invoices.entries())
    if (!UNPAID.has(index) && amount_remaining !== '0')
      await send('POST', '/payments', {
        destination_type: 'INVOICE',
        destination_id: id,
        amount: amount_remaining,
        currency: 'usd',
        payment_method_type: 'OFFLINE',
        idempotency_key: id,
      });
  const own = invoices.filter((invoice) => invoice.customer_id === customer_id);
  for (const { id, line_items } of own) {
    const line = line_items.find((one) => one.meter_id === meter_id);
    if (line) return { invoice_id: id, line_id: line.id };
  }
  throw new Error(`no invoice of ${customer_id} has usage of ${meter_id}`);
}

async function request(
  { url, api_key }: CompanyDoor,
  { method, path, body }: { method: string; path: string; body?: unknown },
): Promise<unknown> {
  const response = await fetch(`${url}/v1${path}`, {
    method,
    headers: { 'x-api-key': api_key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? null : JSON.parse(text);
}
