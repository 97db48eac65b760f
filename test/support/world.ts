/**
 * Functions with which a test describes a timeline: on a date a customer subscribes, uses or cancels; the clock advances, the
 * scheduler runs, and the invoices are compared. The databases, HTTP and the pipeline are real; only the test advances the clock.
 *
 *   const world = await startWorld();
 *   await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' }), usage('calls', '0.01')]);
 *   await world.on('2026-01-01', () => world.subscribe('acme', 'Pro'));
 *   await world.on('2026-01-10', () => world.use('acme', 'calls', 120));
 *   await world.on('2026-02-01');
 *   expect(await world.invoices('acme')).to.deep.equal([…]);
 */
import { expect } from 'chai';
import { type BillingReport, billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import {
  type FinalizationReport,
  finalizeDueInvoices,
} from '../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import type { Finding } from '../../actions/operations/audit/findings.ts';
import { auditInvoices } from '../../actions/operations/audit/invoices.ts';
import { auditUninvoiced } from '../../actions/operations/audit/uninvoiced.ts';
import { tryAdvance } from '../../actions/schedule/test-clocks/advance-test-clock.ts';
import type { Route } from '../../api/http/route.ts';
import { invoiceRoutes } from '../../api/invoicing/invoices/routes.ts';
import { subscriptionRoutes } from '../../api/lifecycle/subscriptions/routes.ts';
import { ingestRoutes } from '../../api/metering/events/ingest.ts';
import { routes } from '../../api/resources.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { type RunningPipeline, startPipeline } from '../../pipeline/pipeline.ts';
import type { UsageCache } from '../../storage/usage/usage-cache.ts';
import { startUsageFeed } from '../../storage/usage/usage-feed.ts';
import type { AnswerTo, Invoice, Meter, Modification, Plan, Price, Subscription, TestClock } from './answers.ts';
import { startTestApi, type TestApi } from './api.ts';
import { isLogProcessed, isSettled } from './settled.ts';
import { until } from './until.ts';

type Fields = Record<string, unknown>;

export type PriceTerms = Fields & { meter?: string };

/** A fixed charge, in arrears by default. */
export function fixed(amount: string, fields: Fields = {}): PriceTerms {
  return { type: 'FIXED', billing_model: 'FLAT_FEE', amount, invoice_cadence: 'ARREAR', ...fields };
}

/** A charge for the usage of the meter with this name. */
export function usage(meter: string, amount: string, fields: Fields = {}): PriceTerms {
  return { meter, type: 'USAGE', billing_model: 'FLAT_FEE', amount, invoice_cadence: 'ARREAR', ...fields };
}

/** Slabs of `[up_to, unit_amount, flat_amount]`. */
export function tiers(meter: string, slabs: [number | null, string, string?][], fields: Fields = {}): PriceTerms {
  const asTiers = slabs.map(([up_to, unit_amount, flat_amount]) => ({ up_to, unit_amount, flat_amount }));
  return {
    meter,
    type: 'USAGE',
    billing_model: 'TIERED',
    tier_mode: 'SLAB',
    tiers: asTiers,
    invoice_cadence: 'ARREAR',
    ...fields,
  };
}

/**
 * With `test_clock` the environment has its own clock, which starts at `now`, and the machine's clock is frozen. `on`
 * advances the test clock, so drafts become final on the way, too. With `beside` the API caches like a process without a
 * pipeline: slice notifications update the cache, not the pipeline itself.
 */
export async function startWorld(
  options: {
    now?: string;
    test_clock?: boolean;
    config?: Record<string, string>;
    usage_cache?: UsageCache;
    beside?: boolean;
  } = {},
): Promise<World> {
  const extra = [...ingestRoutes, ...subscriptionRoutes, ...invoiceRoutes];
  const listed = new Set(routes.map(place));
  const api = await startTestApi({
    now: options.now ?? '2026-01-01T00:00:00Z',
    config: options.config ?? {},
    ...(options.usage_cache ? { usage_cache: options.usage_cache, beside: options.beside ?? false } : {}),
    routes: [...routes, ...extra.filter((route) => !listed.has(place(route)))],
  });
  if (options.beside) startUsageFeed(api.services.postgres, options.usage_cache!);
  const world = new World(api, options);
  await world.resumePipeline();
  if (options.test_clock) await world.startTestClock();
  return world;
}

function place({ method, path }: Route): string {
  return `${method} ${path}`;
}

export class World {
  readonly api: TestApi;
  readonly #isBeside: boolean;
  #pipeline: RunningPipeline | null = null;
  readonly #ids = new Map<string, string>();
  #now: Date;
  #clock_id: string | null = null;

  constructor(api: TestApi, { beside = false } = {}) {
    this.api = api;
    this.#isBeside = beside;
    this.#now = api.services.clock();
  }

  get now(): Date {
    return this.#now;
  }

  /** Moves the clock, runs the work that has fallen due by then, and then the actions of the day. */
  async on(date: string, ...deeds: (() => Promise<unknown>)[]): Promise<void> {
    if (this.#clock_id === null) {
      this.at(date);
      await this.bill();
    } else await this.advance(date);
    for (const deed of deeds) await deed();
  }

  /** Moves the clock only, as if the scheduler were not running. */
  at(date: string): void {
    this.#now = instantIn(date);
    this.api.setNow(this.#now);
  }

  async startTestClock(): Promise<void> {
    const { id } = await this.post('/test-clocks', { frozen_time: this.#now.toISOString() });
    this.#clock_id = id;
  }

  async testClock(): Promise<TestClock> {
    return this.get(`/test-clocks/${this.#clock_id}`);
  }

  /** Requests an advance of the test clock, runs it as a scheduler does, and returns the clock. */
  async advance(date: string, signal = AbortSignal.timeout(600_000)): Promise<TestClock> {
    const { workflow_id } = await this.requestAdvance(date);
    await this.work(workflow_id!, signal);
    const clock = await this.testClock();
    expect(clock.test_clock_status, JSON.stringify(clock.failure)).to.equal('ready');
    this.#now = new Date(clock.frozen_time);
    return clock;
  }

  async requestAdvance(date: string): Promise<AnswerTo<'POST', `/test-clocks/${string}/advance`>> {
    const body = { frozen_time: instantIn(date).toISOString() };
    const answer = await this.api.request('POST', `/test-clocks/${this.#clock_id}/advance`, { body });
    expect(answer.status, answer.text).to.equal(202);
    return answer.body;
  }

  /** Runs one attempt of a requested advance. */
  work(workflow_id: string, signal: AbortSignal, mayGoOn?: () => Promise<boolean>): ReturnType<typeof tryAdvance> {
    const { services, scope } = this.api;
    const how = { attempt: 1, is_last: false, clock: services.clock, signal, timeout_ms: 600_000, mayGoOn };
    return tryAdvance(services, { ...scope, workflow_id }, { ...how, settings: services.config });
  }

  async bill(): Promise<BillingReport> {
    await this.waitForPipeline();
    const report = await billDuePeriods(this.api.services, this.#now);
    if (report.failed.length > 0) throw report.failed[0]!.error;
    expect(report.waiting, 'subscriptions that wait for usage').to.deep.equal([]);
    return report;
  }

  /** Runs the job that finalizes drafts after their delay; without a delay it finalizes every draft. */
  async finalize(delay_seconds = 0): Promise<FinalizationReport> {
    const report = await finalizeDueInvoices(this.api.services, { now: this.#now, delay_seconds });
    if (report.failed.length > 0) throw report.failed[0]!.error;
    return report;
  }

  async meter(name: string, aggregation: Fields = { type: 'SUM', field: 'n' }, fields: Fields = {}): Promise<Meter> {
    const meter = await this.post('/meters', { name, event_name: name, aggregation, ...fields });
    this.#ids.set(`meter ${name}`, meter.id);
    return meter;
  }

  async plan(name: string, prices: readonly PriceTerms[]): Promise<Plan> {
    const plan = await this.post('/plans', { name });
    this.#ids.set(`plan ${name}`, plan.id);
    for (const price of prices) await this.price(name, price);
    return plan;
  }

  async price(plan: string, { meter, ...terms }: PriceTerms): Promise<Price> {
    return this.post('/prices', {
      entity_type: 'PLAN',
      entity_id: this.id(`plan ${plan}`),
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      price_unit_type: 'FIAT',
      // Prices begin in the past, whatever the clock of the test shows.
      start_date: '2020-01-01T00:00:00Z',
      ...(meter === undefined ? {} : { meter_id: this.id(`meter ${meter}`) }),
      ...terms,
    });
  }

  /** Creates the customer with this name, unless it exists. */
  async customer(name: string): Promise<void> {
    if (this.#ids.has(`customer ${name}`)) return;
    const made = await this.post('/customers', { external_id: name, name });
    this.#ids.set(`customer ${name}`, made.id);
  }

  async subscribe(customer: string, plan: string, fields: Fields = {}): Promise<Subscription> {
    await this.customer(customer);
    const subscription = await this.post('/subscriptions', {
      external_customer_id: customer,
      plan_id: this.id(`plan ${plan}`),
      currency: 'usd',
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      ...fields,
    });
    this.#ids.set(`subscription ${customer}`, subscription.id);
    return subscription;
  }

  cancel(
    customer: string,
    fields: Fields = { cancellation_type: 'immediate' },
  ): Promise<AnswerTo<'POST', `/subscriptions/${string}/cancel`>> {
    return this.post(`/subscriptions/${this.id(`subscription ${customer}`)}/cancel`, fields);
  }

  /** Makes the second subscription inherit from the first, so that both are invoiced as one. */
  group(parent: string, child: string): Promise<Modification> {
    const child_subscription_ids = [this.id(`subscription ${child}`)];
    return this.post(`/subscriptions/${this.id(`subscription ${parent}`)}/modify/execute`, {
      type: 'grouped_invoicing',
      grouped_invoicing_params: { action: 'add', child_subscription_ids },
    });
  }

  /** Sends an event with this number of units, now or at another instant. */
  use(customer: string, event_name: string, n: number | string, fields: Fields = {}): Promise<void> {
    return this.send([this.event(customer, event_name, { n, ...fields })]);
  }

  event(
    customer: string,
    event_name: string,
    { n, at, event_id }: { n: number | string; at?: string; event_id?: string },
  ): Fields {
    const timestamp = at === undefined ? this.#now.toISOString() : at;
    return { event_id, event_name, external_customer_id: customer, timestamp, properties: { n }, source: 'world' };
  }

  async send(events: readonly Fields[]): Promise<void> {
    for (let from = 0; from < events.length; from += 1000) {
      const answer = await this.api.request('POST', '/events/bulk', {
        body: { events: events.slice(from, from + 1000) },
      });
      expect(answer.status, answer.text).to.equal(202);
    }
  }

  /** Replaces an accepted event by another. */
  async replace(event_id: string, { event_id: _own, ...event }: Fields): Promise<void> {
    const answer = await this.api.request('POST', `/events/${encodeURIComponent(event_id)}/replace`, {
      body: { event, reason: 'a mistake of the producer' },
    });
    expect(answer.status, answer.text).to.equal(202);
    await this.waitForPipeline();
    const { items } = await this.get(`/events/${encodeURIComponent(event_id)}/corrections`);
    expect(items).not.to.be.empty;
    expect(items.map(({ state }) => state)).to.deep.equal(items.map(() => 'applied'));
  }

  /** Resolves when every accepted event has had its effect and every meter is live. */
  async waitForPipeline(timeout_ms?: number): Promise<void> {
    const { log, postgres } = this.api.services;
    const isDone = () => isSettled(postgres, () => isLogProcessed(log));
    await until('every event and meter has come through the pipeline', isDone, timeout_ms);
    // Another process sees slices within 100 ms. A write expires its change snapshot, so that its next read sees them at once.
    if (this.#isBeside) await postgres.raw('update told_slices_wanted set until = until');
  }

  async subscription(customer: string): Promise<Subscription> {
    return this.get(`/subscriptions/${this.id(`subscription ${customer}`)}`);
  }

  async preview(customer: string): Promise<Invoice> {
    await this.waitForPipeline();
    const answer = await this.api.request('POST', '/invoices/preview', {
      body: { subscription_id: this.id(`subscription ${customer}`) },
    });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  }

  /** The customer's invoices with their lines, oldest first, skipped ones included. */
  async invoices(customer: string): Promise<Invoice[]> {
    const invoice_status = ['DRAFT', 'FINALIZED', 'SKIPPED', 'VOIDED'];
    // Fetches all invoices with one request, each as `GET /invoices/:id` returns it.
    const expand = 'customer,subscription,coupon_applications,tax_applied';
    const subscription_id = this.id(`subscription ${customer}`);
    const { items } = await this.post('/invoices/search', { subscription_id, invoice_status, expand, limit: 1000 });
    return (items as Invoice[]).sort((a, b) => a.billing_sequence! - b.billing_sequence!);
  }

  /** Pays the remaining amount of all the customer's invoices. */
  async pay(customer: string): Promise<void> {
    const invoices = await this.invoices(customer);
    for (const { id, invoice_status, amount_remaining: amount, currency } of invoices) {
      if (invoice_status !== 'FINALIZED' || new Decimal(amount).lte(0)) continue;
      const received = { destination_type: 'INVOICE', destination_id: id, payment_method_type: 'OFFLINE' };
      await this.post('/payments', { ...received, amount, currency });
    }
  }

  /** Each invoice as a few lines of text, for reading and comparing. */
  async statements(customer: string): Promise<string[]> {
    return (await this.invoices(customer)).map(statement);
  }

  post<Path extends string>(path: Path, body: Fields): Promise<AnswerTo<'POST', Path>>;
  post<Body>(path: string, body: Fields): Promise<Body>;
  async post(path: string, body: Fields): Promise<unknown> {
    const answer = await this.api.request('POST', path, { body });
    expect(answer.status, `POST ${path}: ${answer.text}`).to.be.oneOf([200, 201]);
    return answer.body;
  }

  get<Path extends string>(path: Path): Promise<AnswerTo<'GET', Path>>;
  get<Body>(path: string): Promise<Body>;
  async get(path: string): Promise<unknown> {
    const answer = await this.api.request('GET', path);
    expect(answer.status, `GET ${path}: ${answer.text}`).to.equal(200);
    return answer.body;
  }

  has(what: string): boolean {
    return this.#ids.has(what);
  }

  /** Names a record that the test made by itself. */
  remember(what: string, id: string): void {
    this.#ids.set(what, id);
  }

  id(what: string): string {
    const id = this.#ids.get(what);
    if (id === undefined) throw new Error(`the world has no ${what}`);
    return id;
  }

  /** Stops the pipeline: events are accepted and stay in the log. */
  async pausePipeline(): Promise<void> {
    await this.#pipeline?.stop();
    this.#pipeline = null;
  }

  async resumePipeline(): Promise<void> {
    const { logger, clock, config } = this.api.services;
    const options = { owner: 'the world', slice_events_max: config.SLICE_EVENTS_MAX, logger, clock };
    const { usage_cache, ...services } = this.api.services;
    const own = this.#isBeside || !usage_cache ? services : { ...services, usage_cache };
    this.#pipeline = await startPipeline(own, options);
  }

  /**
   * Stops the world after checks of every invoice: it is the sum of its lines and payments, no invoice number is
   * missing, and no usage is unbilled.
   */
  async stop(): Promise<void> {
    await this.pausePipeline();
    const findings: string[] = [];
    const found = ({ kind, what }: Finding) => void findings.push(`${kind}: ${what}`);
    await auditInvoices(this.api.services, found);
    await auditUninvoiced(this.api.services, found);
    await this.api.stop();
    expect(findings).to.deep.equal([]);
  }
}

function instantIn(date: string): Date {
  return new Date(date.length === 10 ? `${date}T00:00:00Z` : date);
}

type Period = { period_start: string | null; period_end: string | null };

/** Formats an invoice as `DRAFT 2026-01-01..2026-02-01 = 12.5`, then one `display name: quantity = amount` per line. */
export function statement(invoice: Invoice): string {
  const span = (record: Period) => `${shortDate(record.period_start!)}..${shortDate(record.period_end!)}`;
  const head = `${invoice.billing_reason} ${invoice.invoice_status} ${span(invoice)} = ${plain(invoice.total)}`;
  const lines = invoice.line_items.map(
    (line) => `  ${line.display_name} ${span(line)}: ${plain(line.quantity)} = ${plain(line.amount)}`,
  );
  return [head, ...lines].join('\n');
}

/** The content of an invoice without its ids and times, to compare a preview with its draft. */
export function summarizeInvoice(invoice: Invoice) {
  const { subtotal, total, amount_due, line_items } = invoice;
  const lines = line_items.map((line) => ({
    name: line.display_name,
    quantity: line.quantity,
    amount: line.amount,
    ...dates(line),
  }));
  return { subtotal, total, amount_due, ...dates(invoice), lines };
}

function dates({ period_start, period_end }: Period) {
  return { from: Date.parse(period_start!), to: Date.parse(period_end!) };
}

function shortDate(timestamp: string): string {
  const iso = new Date(timestamp).toISOString();
  return iso.endsWith('T00:00:00.000Z') ? iso.slice(0, 10) : iso.slice(0, 16);
}

function plain(amount: string): string {
  return new Decimal(amount).toFixed();
}
