/**
 * One installation, in which each provider has a tenant with one customer. The clocks of the service, of its machine, of the
 * database and of the providers move together. Webhooks arrive twice and in any order, or never.
 */
import { mock } from 'node:test';
import { expect } from 'chai';
import { listDueWork } from '../../actions/schedule/due-work.ts';
import { listConnectionsToRead } from '../../storage/queue/provider-events.ts';
import type { TestApi } from './api.ts';
import { moveDatabaseClock } from './moved-clock.ts';
import { ConnectedAccount, SETTINGS_KEY } from './providers/connected-account.ts';
import type { InvoiceCopy, ProviderDouble } from './providers/provider-double.ts';
import type { Chance } from './seeds.ts';
import { DUE_WORK } from './stripe-world.ts';
import { fixed, startWorld, usage, World } from './world.ts';

const DAY_MS = 86_400_000;
const CUSTOMER = 'acme';
const LOST = 0.2;

type InvoiceRow = Readonly<Record<'id' | 'invoice_status' | 'amount_remaining' | 'payment_status', string>>;

/** A tenant with one customer whose invoices are sent to the provider. */
export type Books = {
  readonly name: string;
  readonly there: ProviderDouble;
  readonly world: World;
  readonly account: ConnectedAccount;
};

export class ProvidersYear {
  readonly books: readonly Books[];
  readonly #home: World;
  readonly #chance: Chance;
  readonly #setDatabaseClock: (instant: Date) => Promise<void>;
  readonly #log: string[] = [];
  readonly happened = new Map<string, number>();
  #deck: string[] = [];

  private constructor(home: World, books: readonly Books[], chance: Chance, setDatabaseClock: ProvidersYear['at']) {
    this.#home = home;
    this.books = books;
    this.#chance = chance;
    this.#setDatabaseClock = setDatabaseClock;
  }

  static async begin(
    doubles: readonly ProviderDouble[],
    { now, chance }: { now: string; chance: Chance },
  ): Promise<ProvidersYear> {
    const PROVIDER_ADDRESSES = doubles.map(({ provider_type, fake }) => `${provider_type}=${fake.url.href}`).join(',');
    const home = await startWorld({ now, config: { SECRETS_KEYS: SETTINGS_KEY, PROVIDER_ADDRESSES } });
    const setDatabaseClock = await moveDatabaseClock(home.api.services.postgres);
    await setDatabaseClock(new Date(now));
    const books: Books[] = [];
    for (const there of doubles) books.push(await openBooks(home, there));
    return new ProvidersYear(home, books, chance, setDatabaseClock);
  }

  get now(): Date {
    return this.#home.now;
  }

  /** What was done with the money of these invoices. */
  describe(invoice_ids: readonly string[]): string {
    return this.#log.filter((line) => invoice_ids.some((id) => line.includes(id))).join('\n');
  }

  /** Moves all clocks. The providers forget idempotency keys after a day. */
  at = async (instant: Date): Promise<void> => {
    const passed_ms = instant.getTime() - this.now.getTime();
    mock.timers.setTime(instant.getTime());
    await this.#setDatabaseClock(instant);
    for (const { world, account, there } of this.books) {
      world.at(instant.toISOString());
      account.now = instant;
      if (passed_ms >= DAY_MS) there.forgetKeys();
    }
    this.#home.at(instant.toISOString());
  };

  async use(): Promise<void> {
    for (const { world } of this.books) await world.use(CUSTOMER, 'calls', this.#chance.whole(1, 300));
    await this.#home.waitForPipeline();
  }

  /** The scheduler works, and webhooks arrive. */
  async work(): Promise<void> {
    const { services } = this.#home.api;
    for (const { name, run } of listDueWork(services.config)) {
      if (!DUE_WORK.includes(name)) continue;
      const { failed } = await run(services, { now: this.now });
      expect(failed, name).to.deep.equal([]);
    }
    for (const { account, there } of this.#chance.shuffled(this.books)) {
      await account.push();
      const webhooks = there.takeWebhooks();
      for (const webhook of this.#chance.shuffled([...webhooks, ...webhooks]))
        if (this.#chance.next() >= LOST) expect(await account.deliver(webhook)).to.equal(200);
    }
    const due = (await listConnectionsToRead(services.postgres, this.now)).map(({ id }) => id);
    for (const { account } of this.books) if (due.includes(account.connection_id)) await account.read();
  }

  /** Something happens to an invoice of each provider. */
  async act(): Promise<void> {
    const names = Object.keys(DEEDS);
    if (this.#deck.length < this.books.length) this.#deck = [...this.#deck, ...this.#chance.shuffled(names)];
    for (const books of this.books) {
      const name = this.#deck.shift()!;
      const done = await DEEDS[name]!(books, this.#chance);
      this.#log.push(`${this.now.toISOString().slice(0, 10)} ${books.name}: ${name} ${done ?? 'not possible'}`);
      if (done !== null) this.happened.set(name, (this.happened.get(name) ?? 0) + 1);
    }
  }

  async stop(): Promise<void> {
    await this.#home.stop();
    for (const { there } of this.books) await there.fake.stop();
  }
}

async function openBooks(home: World, there: ProviderDouble): Promise<Books> {
  const { key, scope } = await home.api.otherTenant();
  // Test credentials are refused in production.
  await home.api.services.postgres('environments').where({ id: scope.environment_id }).update({ type: 'development' });
  const request: TestApi['request'] = (method: string, path: string, options = {}) =>
    home.api.request(method, path, { key, ...options });
  const api: TestApi = { ...home.api, key, scope, request };
  const world = new World(api);
  const account = await ConnectedAccount.join(api, there);
  account.now = home.now;
  await world.meter('calls');
  const { currency } = there;
  await world.plan('Pro', [fixed('20.01', { currency }), usage('calls', '0.13', { currency })]);
  const customer = { external_id: CUSTOMER, name: `Acme of ${there.provider_type}`, email: 'acme@example.com' };
  const address = { address_line1: 'Way 1', address_city: 'Berlin', address_state: 'BE', address_postal_code: '10115' };
  const { id } = await world.post<{ id: string }>('/customers', { ...customer, ...address, address_country: 'DE' });
  world.remember(`customer ${CUSTOMER}`, id);
  await world.subscribe(CUSTOMER, 'Pro', { currency });
  return { name: there.provider_type, there, world, account };
}

/** Invoices that are final, the newest last. */
export async function listFinal({ account }: Books): Promise<InvoiceRow[]> {
  const { postgres } = account.api.services;
  return postgres('invoices')
    .where({ ...account.api.scope, invoice_status: 'FINALIZED' })
    .orderBy('created_at');
}

export function findOpenCopy({ there }: Books, invoice_id: string): InvoiceCopy | undefined {
  return there.listCopies(invoice_id).find(({ status }) => status === 'open');
}

type Deed = (books: Books, chance: Chance) => Promise<string | null>;

/** Each returns the invoice, or null if there is none for it. */
const DEEDS: Readonly<Record<string, Deed>> = {
  'an invoice is paid there': (books) =>
    withOpen(books, async (id) => {
      const copy = findOpenCopy(books, id);
      if (copy === undefined) return false;
      books.there.payCopy(copy.id);
      return true;
    }),
  'an invoice is paid here in two parts': (books) =>
    withOpen(books, async (id, remaining) => {
      const part = (Number(remaining) / 3).toFixed(2);
      await books.account.pay(id, part);
      await books.account.push();
      await books.account.pay(id, (Number(remaining) - Number(part)).toFixed(2));
      return true;
    }),
  'a part is paid here, the rest there': (books) =>
    withOpen(books, async (id, remaining) => {
      await books.account.pay(id, (Number(remaining) / 4).toFixed(2));
      await books.account.push();
      const copy = findOpenCopy(books, id);
      if (copy !== undefined) books.there.payCopy(copy.id);
      return true;
    }),
  'an open invoice is credited here': (books, chance) =>
    withOpen(books, async (id) => {
      await books.account.credit(id, '3.33', { idempotency_key: String(chance.next()) });
      return true;
    }),
  'an invoice is credited there': (books, chance) =>
    withOpen(books, async (id) => {
      const copy = findOpenCopy(books, id);
      if (copy === undefined || books.there.creditCopy === undefined) return false;
      const credit_id = books.there.creditCopy(copy.id, '2.22');
      await adoptCredit(books, id, { credit_id, idempotency_key: String(chance.next()) });
      return true;
    }),
  'a payment is refunded here': (books, chance) =>
    withPayment(books, async (payment_id) => {
      const refund = { amount: '1.11', idempotency_key: String(chance.next()) };
      await books.account.request('POST', `/payments/${payment_id}/refund`, refund);
      return true;
    }),
  'a payment is refunded there': (books) =>
    withPayment(books, async (_payment_id, gateway_payment_id) => {
      if (gateway_payment_id === null || books.there.refundPayment === undefined) return false;
      books.there.refundPayment(gateway_payment_id, '4.44');
      return true;
    }),
  'an invoice is voided here': (books) =>
    withOpen(books, async (id) => {
      const answer = await books.account.api.request('POST', `/invoices/${id}/void`);
      return answer.status === 200;
    }),
  'an answer is lost': (books, chance) =>
    withOpen(books, async () => {
      books.there.disturb('customer', chance.pick(['rate_limit', 'fault']));
      books.there.disturb('invoice', 'lost_answer');
      return true;
    }),
};

/** A person links the credit of the provider to a credit note that is made for it here. */
async function adoptCredit(
  { account, name }: Books,
  invoice_id: string,
  { credit_id, idempotency_key }: { credit_id: string; idempotency_key: string },
): Promise<void> {
  const entity_id = await account.credit(invoice_id, '2.22', { process_credit_note: false, idempotency_key });
  const link = { provider_type: name, entity_type: 'credit_note', entity_id, provider_entity_id: credit_id };
  await account.request('POST', '/integrations/link', link);
  await account.request('POST', `/creditnotes/${entity_id}/finalize`);
}

async function withOpen(
  books: Books,
  act: (invoice_id: string, remaining: string) => Promise<boolean>,
): Promise<string | null> {
  const open = (await listFinal(books)).findLast(({ amount_remaining }) => Number(amount_remaining) > 5);
  return open && (await act(open.id, open.amount_remaining)) ? open.id : null;
}

async function withPayment(
  { account }: Books,
  act: (payment_id: string, gateway_payment_id: string | null) => Promise<boolean>,
): Promise<string | null> {
  const { postgres } = account.api.services;
  const payment = await postgres('payments')
    .where({ ...account.api.scope, payment_status: 'SUCCEEDED' })
    .where('amount', '>', 6)
    .orderBy('created_at', 'desc')
    .first();
  return payment && (await act(payment.id, payment.gateway_payment_id)) ? payment.destination_id : null;
}
