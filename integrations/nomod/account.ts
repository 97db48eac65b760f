/**
 * Account at Nomod. Its invoices have one line over the total. Nomod has neither idempotency keys nor metadata: a customer has our id as its
 * job title, an invoice in its note, by which a repeated push finds them.
 */

import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type {
  AccountIdentity,
  ProviderAccount,
  ProviderInvoice,
  ProviderRecord,
  PushedCustomer,
  PushedInvoice,
  SearchedInvoice,
} from '../account.ts';
import type { AccountPayments } from '../account-payments.ts';
import { JsonNumber } from '../exact-json.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { cutCharacters, hasBegun } from '../pushed-records.ts';
import { fromNomodAmount, toNomodAmount } from './amounts.ts';
import { describeCurrencyRefusal, type NomodClient } from './client.ts';
import { NomodPayments } from './payments.ts';
import { type NomodCharge, type NomodCustomer, type NomodInvoice, readInvoiceId } from './records.ts';
import { findInvoiceStatus, isPaid, toReportedPayment } from './states.ts';
import { hasNoteId, toInvoiceNote, toInvoiceNumber, toTitle } from './texts.ts';

/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_MS = 300_000;
/** Maximum number of records that a search reads. */
const LISTED_MAX = 2_000;
/** Number of newest customers that a first push reads: a push of the same second may have been interrupted. */
const LISTED_FIRST = 100;

export class NomodAccount implements ProviderAccount {
  readonly payments: AccountPayments;
  readonly #client: NomodClient;

  constructor(client: NomodClient) {
    this.#client = client;
    this.payments = new NomodPayments(client);
  }

  /** Checks the key by a list request. Nomod does not say to which account a key belongs, so the id is unknown. */
  async identify(): Promise<AccountIdentity> {
    await this.#client.checkCredentials();
    return { provider_account_id: null, name: null };
  }

  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    const found = await this.#findCustomer(customer);
    const { id } = found ?? (await this.#client.create('customers', toNomodCustomer(customer)));
    return { provider_entity_id: id, url: null };
  }

  async hasCustomer(provider_entity_id: string): Promise<boolean> {
    return (await this.#client.find('customers', provider_entity_id)) !== null;
  }

  /** Finds the customer of an earlier attempt among those that are younger than the first one. */
  async #findCustomer(pushed: PushedCustomer): Promise<NomodCustomer | null> {
    const isFirst = !hasBegun(pushed);
    let read = 0;
    for await (const customer of this.#listSince('customers', pushed.key_created_at, {})) {
      if (customer.job_title === pushed.customer_id) return customer;
      if (++read === LISTED_FIRST && isFirst) return null;
    }
    return null;
  }

  /** Lists records that are younger than the instant. The list must not be longer than a search reads. */
  async *#listSince<Name extends 'customers' | 'charges'>(
    name: Name,
    since: Date,
    parameters: Readonly<Record<string, string>>,
  ) {
    let read = 0;
    for await (const record of this.#client.list(name, parameters)) {
      if (Date.parse(record.created) < since.getTime() - CLOCK_SLACK_MS) return;
      yield record;
      if (++read >= LISTED_MAX)
        throw new ProviderError('person', `there are more than ${LISTED_MAX} new ${name} at Nomod: search there`);
    }
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    const body = toNomodInvoice(invoice);
    const created = (await this.#findUsable(invoice)) ?? (await this.#createAlone(invoice, body));
    try {
      checkTotal(created, invoice);
    } catch (error) {
      if (findInvoiceStatus(created) === 'open') await this.#cancel(created.id);
      throw error;
    }
    return toRecord(created);
  }

  /** Creates the invoice. If a concurrent push also created one, this push cancels its own and is repeated, so that one remains. */
  async #createAlone(invoice: PushedInvoice, body: ReturnType<typeof toNomodInvoice>): Promise<NomodInvoice> {
    const created = await this.#create(invoice, body);
    const usable = await this.#listUsable(invoice);
    if (usable.every(({ id }) => id === created.id)) return created;
    await this.#cancel(created.id);
    throw new ProviderError('wait', `${invoice.invoice_id} was sent to Nomod twice at once: one attempt is repeated`);
  }

  async #create({ currency }: PushedInvoice, body: ReturnType<typeof toNomodInvoice>): Promise<NomodInvoice> {
    try {
      return await this.#client.create('invoices', body);
    } catch (error) {
      throw describeCurrencyRefusal(error, currency);
    }
  }

  /**
   * Finds the invoice of an earlier attempt. One with another total was never paid and is cancelled, so that a new one replaces it. So are
   * further ones, which interrupted concurrent pushes have left.
   */
  async #findUsable(invoice: PushedInvoice): Promise<NomodInvoice | null> {
    const [found = null, ...others] = await this.#listUsable(invoice);
    for (const other of others) if (findInvoiceStatus(other) !== 'paid') await this.#cancel(other.id);
    if (found === null || findInvoiceStatus(found) === 'paid' || hasTotal(found, invoice)) return found;
    await this.#cancel(found.id);
    return null;
  }

  /** Lists our invoices that can be paid or are paid, paid ones first. */
  async #listUsable({ invoice_id, invoice_number }: Pick<PushedInvoice, 'invoice_id' | 'invoice_number'>) {
    const usable: NomodInvoice[] = [];
    const wanted = { invoice_number: toInvoiceNumber(invoice_number, invoice_id) };
    for await (const one of this.#client.list('invoices', wanted)) {
      const isOurs = one.invoice_number === wanted.invoice_number && hasNoteId(one.note, invoice_id);
      if (isOurs && findInvoiceStatus(one) !== 'void') usable.push(one);
    }
    return usable.toSorted((a, b) => Number(findInvoiceStatus(b) === 'paid') - Number(findInvoiceStatus(a) === 'paid'));
  }

  /** Searches the invoices of the customer, because the caller does not pass the number. */
  async findInvoice({ invoice_id, provider_customer_id }: SearchedInvoice): Promise<ProviderRecord | null> {
    for await (const one of this.#client.list('invoices', { customer_id: provider_customer_id }))
      if (hasNoteId(one.note, invoice_id) && findInvoiceStatus(one) !== 'void') return toRecord(one);
    return null;
  }

  async voidInvoice(provider_entity_id: string): Promise<void> {
    const invoice = await this.#client.find('invoices', provider_entity_id);
    const status = invoice === null ? 'void' : findInvoiceStatus(invoice);
    if (status === 'void') return;
    if (status === 'paid')
      throw new ProviderError('person', `the invoice ${provider_entity_id} is paid at Nomod, so it cannot be voided`);
    await this.#cancel(provider_entity_id);
  }

  /** Cancels the invoice; no effect if it is cancelled already. Throws if it is paid. */
  async #cancel(id: string): Promise<void> {
    try {
      await this.#client.close('invoices', id);
    } catch (error) {
      const current = isRefused(error) ? await this.#client.find('invoices', id) : null;
      if (current === null || findInvoiceStatus(current) !== 'void') throw error;
    }
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    const invoice = await this.#client.find('invoices', provider_entity_id);
    if (invoice === null) return null;
    const invoice_status = findInvoiceStatus(invoice);
    const charges = invoice_status === 'paid' ? [await this.#findPaidCharge(invoice)] : [];
    return {
      ...toRecord(invoice),
      invoice_status,
      total: fromNomodAmount(invoice.amount),
      currency: invoice.currency.toLowerCase(),
      payments: charges.map(toReportedPayment),
    };
  }

  /**
   * Finds the charge that paid the invoice among those since its creation, newest first. Throws if there is none, because the invoice would
   * count as paid without a payment.
   */
  async #findPaidCharge(invoice: NomodInvoice): Promise<NomodCharge> {
    const since = new Date(invoice.created);
    for await (const charge of this.#listSince('charges', since, { type: 'invoice' })) {
      const paid_id = readInvoiceId(charge);
      const isOfInvoice =
        paid_id === null ? Boolean(invoice.note) && charge.note === invoice.note : paid_id === invoice.id;
      if (isOfInvoice && isPaid(charge)) return charge;
    }
    throw new ProviderError('person', `the invoice ${invoice.id} is paid at Nomod, but no charge there names it`);
  }

  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind === 'invoice') return [provider_entity_id];
    const charge = await this.#client.find('charges', provider_entity_id);
    if (charge === null) return [];
    const invoice_id = readInvoiceId(charge);
    return invoice_id === null ? await this.#listWithNote(charge.note) : [invoice_id];
  }

  /** Lists the invoices with the note of a charge that does not name its invoice. */
  async #listWithNote(note: string | null | undefined): Promise<string[]> {
    const [, invoice_number, invoice_id] = /^Invoice (.+) \((\w+)\): /.exec(note ?? '') ?? [];
    if (invoice_number === undefined || invoice_id === undefined) return [];
    const ids: string[] = [];
    const wanted = { invoice_number: toInvoiceNumber(invoice_number, invoice_id) };
    for await (const one of this.#client.list('invoices', wanted)) if (one.note === note) ids.push(one.id);
    return ids;
  }
}

function toRecord({ id, url }: NomodInvoice): ProviderRecord {
  return { provider_entity_id: id, url };
}

function toNomodCustomer({ customer_id, external_id, name, email, address }: PushedCustomer) {
  const { line1, line2, city, postal_code, country } = address;
  return {
    first_name: cutCharacters(name || external_id, 150),
    email: email || undefined,
    job_title: customer_id,
    street: cutCharacters([line1, line2].filter(Boolean).join(', '), 100) || undefined,
    city: cutCharacters(city, 100) || undefined,
    zip_code: postal_code.length <= 16 ? postal_code || undefined : undefined,
    country: country || undefined,
  };
}

/** Builds an invoice without Nomod's service fee, which would be added to the total. Throws if the lines do not add up to the total. */
function toNomodInvoice(invoice: PushedInvoice) {
  const { invoice_id, invoice_number, provider_customer_id, currency, lines, total, due_date } = invoice;
  const sum = sumDecimals(lines.map(({ amount }) => new Decimal(amount)));
  if (!sum.eq(total))
    throw new ProviderError('person', `the lines add up to ${sum.toFixed()} ${currency}, the total is ${total}`);
  const listed = lines.map(({ description, amount }) => `${description}: ${amount}`).join(', ');
  const title = toTitle(invoice_number);
  return {
    ...{ currency: currency.toUpperCase(), customer: provider_customer_id, title },
    items: [{ name: title, amount: toNomodAmount(total, currency), quantity: new JsonNumber('1') }],
    invoice_number: toInvoiceNumber(invoice_number, invoice_id),
    note: toInvoiceNote(invoice, listed),
    due_date: toDueDate(due_date),
    allow_service_fee: false,
  };
}

/** Nomod requires a due date and refuses past ones. Its days may begin earlier than those of UTC, so the first one is tomorrow. */
function toDueDate(due_date: string | null): string {
  const tomorrow = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10);
  const wanted = due_date?.slice(0, 10) ?? tomorrow;
  return wanted > tomorrow ? wanted : tomorrow;
}

function hasTotal(there: NomodInvoice, { total, currency }: PushedInvoice): boolean {
  return there.currency.toLowerCase() === currency && new Decimal(there.amount).eq(total);
}

function checkTotal(there: NomodInvoice, invoice: PushedInvoice): void {
  if (hasTotal(there, invoice)) return;
  const found = `${fromNomodAmount(there.amount)} ${there.currency.toLowerCase()}`;
  throw new ProviderError(
    'person',
    `the total of ${invoice.invoice_id} is ${invoice.total} ${invoice.currency}, but ${found} at Nomod (${there.id})`,
  );
}
