/**
 * The customers of a seed are billed while it goes on: plans with prices on its meters, subscriptions to them whose periods
 * are over, so that the scheduler drafts their invoices as soon as it sees them, invoices computed again and again, and one
 * of them made final on the way. At the end every line of every invoice must say what the model says.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  invoicesByModel,
  type ModelInvoice,
  type ModelPrice,
  type ModelSubscription,
  type ModelTerms,
} from '../support/invoice-model.ts';
import type { ModelEntry } from '../support/reference-model.ts';
import type { Chance } from '../support/seeds.ts';
import { until } from '../support/until.ts';
import type { Client } from './client.ts';
import type { ChaosMeter } from './traffic.ts';

type Price = ModelPrice & { id: string };
/** `open` goes on, and has a preview instead of invoices; `final` has one invoice, which becomes final on the way. */
type Kind = 'weekly' | 'daily' | 'final' | 'open';
type Drawn = Omit<ModelSubscription, 'prices'> & {
  kind: Kind;
  prices: readonly (ModelPrice & { meter: ChaosMeter })[];
};
type Subscription = Omit<ModelSubscription, 'prices'> & { id: string; kind: Kind; prices: readonly Price[] };
type Line = { price_id: string; quantity: string; amount: string };
type Invoice = {
  id: string;
  invoice_status: 'DRAFT' | 'SKIPPED' | 'FINALIZED';
  period_start: string;
  period_end: string;
  total: string;
  line_items: Line[];
};
type Page<Item> = { items: Item[] };

const STARTS = ['2026-02-28T00:00:00Z', '2026-03-01T12:00:00Z', '2026-03-03T22:30:00Z'];
const DAYS = { start: '2026-03-09T12:00:00Z', end: '2026-03-12T07:30:00Z' };
const OPEN_END = '2028-01-01T00:00:00Z';
const ENDS = ['2026-03-15T00:00:00Z', '2026-03-13T07:30:00Z', '2026-03-12T00:00:00Z'];
const TIMEZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata'];
const KINDS: Kind[] = ['weekly', 'final', 'daily', 'open'];
const PERIODS: Record<Kind, { named: string; period: ModelSubscription['period'] }> = {
  weekly: { named: 'WEEKLY', period: { weeks: 1 } },
  daily: { named: 'DAILY', period: { days: 1 } },
  final: { named: 'MONTHLY', period: { months: 1 } },
  open: { named: 'ANNUAL', period: { years: 1 } },
};
const DRAFTED_WITHIN_MS = 60_000;
/** So many, also when the time is over before the first drafts are there; but no longer than this for it. */
const COMPUTED_AT_LEAST = 3;
const DISTURBED_WITHIN_MS = 10_000;

export class Billing {
  readonly counts = { subscriptions: 0, computed: 0, invoices: 0, lines: 0 };
  readonly #name: string;
  readonly #client: Client;
  readonly #chance: Chance;
  readonly #subscriptions: Subscription[] = [];
  /** What it said when it became final, by its id. */
  readonly #final = new Map<string, string>();

  constructor(name: string, client: Client, chance: Chance) {
    this.#name = name;
    this.#client = client;
    this.#chance = chance;
  }

  /** A plan of the first meters while the time runs, and one of those that came later. */
  async run(meters: readonly ChaosMeter[], { isOver, customers }: { isOver(): boolean; customers: readonly string[] }) {
    while (meters.length < 3) await pause(20);
    const early = KINDS.map((kind, index) => this.#draw(kind, customers[index]!, meters.slice(0, 3)));
    await Promise.all(early.map((drawn) => this.#subscribe(drawn)));
    const until_ms = performance.now() + DISTURBED_WITHIN_MS;
    const isDisturbed = () => this.counts.computed >= COMPUTED_AT_LEAST || performance.now() > until_ms;
    while (!isOver() || !isDisturbed()) {
      await pause(this.#chance.whole(20, 300));
      await this.#disturb();
    }
    if (this.#final.size === 0) await this.#makeOneFinal();
    const later = meters.slice(3);
    if (later.length === 0) return;
    await this.#subscribe(this.#draw(this.#chance.pick<Kind>(['weekly', 'open']), customers[0]!, later));
  }

  /** Once everything has had its effect. */
  async firstDifference(accepted: readonly ModelEntry[]): Promise<string | undefined> {
    const differences = await Promise.all(
      this.#subscriptions.map(async (subscription) => {
        const difference =
          subscription.kind === 'open'
            ? await this.#previewDifference(subscription, accepted)
            : await this.#invoicesDifference(subscription, accepted);
        return difference && `${JSON.stringify(shown(subscription))}\n  ${difference}`;
      }),
    );
    return differences.find((difference) => difference !== undefined);
  }

  async #previewDifference(subscription: Subscription, accepted: readonly ModelEntry[]): Promise<string | undefined> {
    const body = { subscription_id: subscription.id };
    const preview = await this.#client.untilAnswered('POST', '/invoices/preview', { body });
    const [expected] = invoicesByModel(subscription, accepted);
    return this.#difference(subscription, preview.body as Invoice, expected!);
  }

  /** Exactly one for each period, whatever was killed; computed anew and made final, they say what the model says. */
  async #invoicesDifference(subscription: Subscription, accepted: readonly ModelEntry[]): Promise<string | undefined> {
    const expected = invoicesByModel(subscription, accepted);
    const invoices = await until(
      `subscription ${subscription.id} has its ${expected.length} invoices`,
      async () => {
        const found = await this.#invoicesOf(subscription);
        return found.length >= expected.length && found;
      },
      DRAFTED_WITHIN_MS,
    );
    const periods = invoices.map(({ period_start, period_end }) => `${period_start}/${period_end}`);
    const wanted = expected.map(({ start, end }) => `${start}/${end}`);
    if (periods.map(instants).sort().join() !== wanted.map(instants).sort().join())
      return `invoices of ${periods.join(', ')} instead of ${wanted.join(', ')}`;
    for (const { id } of invoices) {
      const difference = this.#final.has(id)
        ? await this.#changeOfFinal(id)
        : await this.#closingDifference(subscription, id, expected);
      if (difference) return difference;
    }
    return undefined;
  }

  async #closingDifference(
    subscription: Subscription,
    id: string,
    expected: readonly ModelInvoice[],
  ): Promise<string | undefined> {
    await this.#client.untilAnswered('POST', `/invoices/${id}/compute?sync=true`);
    const draft = await this.#read(id);
    const wanted = expected.find(({ start }) => Date.parse(start) === Date.parse(draft.period_start))!;
    const difference = this.#difference(subscription, draft, wanted);
    if (difference) return difference;
    const status = Number(wanted.total) === 0 ? 'SKIPPED' : 'DRAFT';
    if (draft.invoice_status !== status) return `invoice ${id} is ${draft.invoice_status} instead of ${status}`;
    if (status === 'SKIPPED') return undefined;
    await this.#finalize(id);
    return this.#difference(subscription, await this.#read(id), wanted);
  }

  #difference(subscription: Subscription, invoice: Invoice, wanted: ModelInvoice): string | undefined {
    const name = new Map(subscription.prices.map((price) => [price.id, price.name]));
    const said = invoice.line_items.map((line) => `${name.get(line.price_id)}: ${line.quantity} = ${line.amount}`);
    const lines = wanted.lines.map((line) => `${line.name}: ${line.quantity} = ${line.amount}`);
    this.counts.invoices++;
    this.counts.lines += lines.length;
    const [got, expected] = [
      [...said.sort(), invoice.total],
      [...lines.sort(), wanted.total],
    ].map((all) => all.join('; '));
    return got === expected ? undefined : `invoice of ${wanted.start} says ${got}\n  instead of ${expected}`;
  }

  /** What people and machines ask of invoices meanwhile. */
  async #disturb(): Promise<void> {
    const subscription = this.#chance.pick(this.#subscriptions);
    if (subscription.kind === 'open') {
      await this.#client.try('POST', '/invoices/preview', { subscription_id: subscription.id });
      return;
    }
    if (subscription.kind === 'final' && this.#final.size === 0 && this.#chance.next() < 0.2)
      return this.#makeOneFinal();
    const invoices = await this.#invoicesOf(subscription);
    if (invoices.length === 0) return;
    const { id } = this.#chance.pick(invoices);
    const sync = this.#chance.next() < 0.6;
    await this.#client.try('POST', `/invoices/${id}/compute?sync=${sync}`);
    this.counts.computed++;
  }

  /** From here on it never changes, whatever becomes of its events. */
  async #makeOneFinal(): Promise<void> {
    const subscription = this.#subscriptions.find(({ kind }) => kind === 'final')!;
    const [invoice] = await this.#invoicesOf(subscription);
    if (!invoice || invoice.invoice_status === 'SKIPPED') return;
    await this.#client.untilAnswered('POST', `/invoices/${invoice.id}/compute?sync=true`, { statuses: [200, 400] });
    if ((await this.#read(invoice.id)).invoice_status === 'SKIPPED') return;
    await this.#finalize(invoice.id);
    this.#final.set(invoice.id, textOf(await this.#read(invoice.id)));
  }

  async #changeOfFinal(id: string): Promise<string | undefined> {
    const now = textOf(await this.#read(id));
    this.counts.invoices++;
    return now === this.#final.get(id) ? undefined : `final invoice ${id} said ${this.#final.get(id)}, now ${now}`;
  }

  /** A try whose answer was lost may have done it. */
  async #finalize(id: string): Promise<void> {
    await this.#client.untilAnswered('POST', `/invoices/${id}/finalize`, { statuses: [200, 400, 409] });
    const { invoice_status } = await this.#read(id);
    if (invoice_status !== 'FINALIZED') throw new Error(`invoice ${id} is ${invoice_status} and does not become final`);
  }

  async #read(id: string): Promise<Invoice> {
    return (await this.#client.untilAnswered('GET', `/invoices/${id}`)).body as Invoice;
  }

  async #invoicesOf({ id }: Subscription): Promise<Invoice[]> {
    const body = { subscription_id: id, invoice_status: ['DRAFT', 'SKIPPED', 'FINALIZED'], limit: 1000 };
    const { items } = (await this.#client.untilAnswered('POST', '/invoices/search', { body })).body;
    // The earlier first: while one that was skipped is not computed again, a later one carries what came late for it.
    return (items as Invoice[]).sort((a, b) => Date.parse(a.period_start) - Date.parse(b.period_start));
  }

  /** Everything that chance decides, before anything is asked for. */
  #draw(kind: Kind, customer: string, meters: readonly ChaosMeter[]): Drawn {
    const start = kind === 'daily' ? DAYS.start : this.#chance.pick(STARTS);
    const end = kind === 'daily' ? DAYS.end : kind === 'open' ? OPEN_END : this.#chance.pick(ENDS);
    const { period } = PERIODS[kind];
    const prices = meters.map((meter, index) => {
      const cumulative = meter.reset_usage === 'NEVER';
      return { name: `${index} ${meter.name}`, terms: this.#terms(), meter, cumulative };
    });
    return { kind, customer, start, end, timezone: this.#chance.pick(TIMEZONES), period, prices };
  }

  async #subscribe(drawn: Drawn): Promise<void> {
    const { kind, customer, start, end, timezone } = drawn;
    const external = { external_id: customer, name: customer };
    await this.#makeOrFind(`/customers/external/${encodeURIComponent(customer)}`, '/customers', external);
    const { plan_id, prices } = await this.#makePlan(drawn);
    const asked = { plan_id, external_customer_id: customer };
    const find = async () => {
      const body = { ...asked, subscription_status: ['active', 'cancelled'] };
      return (await this.#client.untilAnswered('POST', '/subscriptions/search', { body })).body.items[0];
    };
    const { id } = await this.#client.make<{ id: string }>(find, '/subscriptions', {
      ...{ ...asked, timezone, currency: 'usd', start_date: start, billing_cycle: 'anniversary' },
      ...{ billing_period: PERIODS[kind].named, billing_period_count: 1 },
      ...(kind === 'open' ? {} : { end_date: end }),
    });
    this.#subscriptions.push({ ...drawn, id, prices });
    this.counts.subscriptions++;
  }

  async #makePlan({ kind, prices }: Drawn): Promise<{ plan_id: string; prices: Price[] }> {
    const lookup_key = `${kind}-${prices[0]!.meter.id}-${this.#name}`.replaceAll(' ', '-');
    const found = async () => {
      const { body } = await this.#client.untilAnswered('GET', `/plans?lookup_key=${lookup_key}`);
      return (body as Page<{ id: string }>).items[0];
    };
    const { id: plan_id } = await this.#client.make(found, '/plans', { name: lookup_key, lookup_key });
    const made: Price[] = [];
    for (const [index, price] of prices.entries()) {
      const key = `${lookup_key}-${index}`;
      const { id } = await this.#makeOrFind(`/prices/lookup/${key}`, '/prices', {
        ...{ entity_type: 'PLAN', entity_id: plan_id, lookup_key: key, display_name: price.name },
        ...{ currency: 'usd', type: 'USAGE', invoice_cadence: 'ARREAR', billing_cadence: 'RECURRING' },
        ...{ billing_period: PERIODS[kind].named, billing_period_count: 1, start_date: '2020-01-01T00:00:00Z' },
        ...{ meter_id: price.meter.id, ...onTheWire(price.terms) },
      });
      made.push({ ...price, id });
    }
    return { plan_id, prices: made };
  }

  async #makeOrFind(path: string, made: string, body: unknown): Promise<{ id: string }> {
    const find = async () => {
      const answer = await this.#client.untilAnswered('GET', path, { statuses: [200, 404] });
      return answer.status === 200 ? (answer.body as { id: string }) : undefined;
    };
    return this.#client.make<{ id: string }>(find, made, body);
  }

  #terms(): ModelTerms {
    const tiers = [
      { up_to: 10, unit_amount: '0.5' },
      { up_to: 1_000, unit_amount: '0.033', flat_amount: '1.25' },
      { up_to: null, unit_amount: '0.0071', flat_amount: '3' },
    ];
    return this.#chance.pick<ModelTerms>([
      { model: 'FLAT_FEE', amount: '0.0123' },
      { model: 'PACKAGE', amount: '1.7', divide_by: 7, round: this.#chance.pick(['up', 'down']) },
      { model: 'SLAB', tiers },
      { model: 'VOLUME', tiers },
    ]);
  }
}

function onTheWire(terms: ModelTerms): Record<string, unknown> {
  switch (terms.model) {
    case 'FLAT_FEE':
      return { billing_model: 'FLAT_FEE', amount: terms.amount };
    case 'PACKAGE': {
      const transform_quantity = { divide_by: terms.divide_by, round: terms.round };
      return { billing_model: 'PACKAGE', amount: terms.amount, transform_quantity };
    }
    default:
      return { billing_model: 'TIERED', tier_mode: terms.model, tiers: terms.tiers };
  }
}

function instants(period: string): string {
  return period.split('/').map(Date.parse).join('/');
}

function textOf({ invoice_status, total, line_items }: Invoice): string {
  const lines = line_items.map(({ price_id, quantity, amount }) => `${price_id}: ${quantity} = ${amount}`).sort();
  return `${invoice_status} ${lines.join('; ')}; ${total}`;
}

function shown({ prices, ...rest }: Subscription) {
  return { ...rest, prices: prices.map(({ name, terms }) => ({ name, terms })) };
}
