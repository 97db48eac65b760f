/**
 * Account at HubSpot. A customer is a contact, because HubSpot opens an invoice only for a contact. An invoice is a
 * draft until its total equals ours.
 */

import { setTimeout as wait } from 'node:timers/promises';
import { Decimal } from '../../core/foundation/decimal.ts';
import type { ProviderEventSubject } from '../../core/platform/integration/provider-event.ts';
import type {
  AccountIdentity,
  ProviderAccount,
  ProviderInvoice,
  ProviderRecord,
  PushedCustomer,
  PushedInvoice,
  PushedPayment,
  PushedSubscription,
  SearchedInvoice,
} from '../account.ts';
import { isMissing, isRefused, ProviderError } from '../provider-error.ts';
import { hasBegun } from '../pushed-records.ts';
import type { HubSpotClient } from './client.ts';
import { toCompanyInput, toDealInput, toStageInput } from './deals.ts';
import { toContactInput, toInvoiceInput, toLineInputs, toPaymentInput } from './documents.ts';
import { OwnRecords } from './own-records.ts';
import { readAmount, readCurrency, readInvoiceStatus, readUrl, toProviderInvoice } from './pulled-invoice.ts';
import type { HubSpotRecord } from './records.ts';

/** HubSpot computes the total of an invoice after its lines were created, which may take a moment. */
const TOTAL_READS_MAX = 5;
const TOTAL_PAUSE_MS = 500;

export class HubSpotAccount implements ProviderAccount {
  readonly #client: HubSpotClient;
  readonly #records: OwnRecords;

  constructor(client: HubSpotClient) {
    this.#client = client;
    this.#records = new OwnRecords(client);
  }

  async identify(): Promise<AccountIdentity> {
    const { portalId } = await this.#client.readAccount();
    return { provider_account_id: portalId, name: null };
  }

  /** Creates the contact, and the company of a customer that is a business. */
  async pushCustomer(customer: PushedCustomer): Promise<ProviderRecord> {
    const contact = await this.#pushContact(customer);
    const { customer_id, business_name = null } = customer;
    if (business_name !== null) {
      const company = toCompanyInput(business_name, customer, contact.provider_entity_id);
      await this.#records.create('company', customer_id, company);
    }
    return contact;
  }

  async #pushContact(customer: PushedCustomer): Promise<ProviderRecord> {
    const { customer_id, email } = customer;
    const earlier = hasBegun(customer) ? await this.#records.find('contact', customer_id) : null;
    if (earlier !== null) return toRecord(earlier);
    try {
      return toRecord((await this.#records.create('contact', customer_id, toContactInput(customer))).record);
    } catch (error) {
      if (!isRefused(error) || error.provider_code !== 'CONFLICT') throw error;
      throw new ProviderError(
        'person',
        `HubSpot has a contact with the e-mail ${JSON.stringify(email)} already: link it (POST /integrations/link), or change one of the addresses (${error.message})`,
        { provider_code: error.provider_code },
      );
    }
  }

  async pushSubscription(subscription: PushedSubscription): Promise<ProviderRecord> {
    const { subscription_id, customer_id } = subscription;
    const earlier = hasBegun(subscription) ? await this.#records.find('deal', subscription_id) : null;
    if (earlier !== null) {
      await this.updateSubscription(earlier.id, subscription);
      return toRecord(earlier);
    }
    const company = await this.#records.find('company', customer_id);
    const deal = toDealInput(subscription, company?.id ?? null);
    try {
      return toRecord((await this.#records.create('deal', subscription_id, deal)).record);
    } catch (error) {
      throw explainCurrency(error, 'deal_currency_code', subscription);
    }
  }

  async updateSubscription(
    provider_entity_id: string,
    subscription: Pick<PushedSubscription, 'subscription_status'>,
  ): Promise<void> {
    await this.#client.update('deal', provider_entity_id, toStageInput(subscription));
  }

  /** HubSpot returns a deleted contact only on request. */
  async hasCustomer(provider_entity_id: string): Promise<boolean> {
    for (const is_archived of [false, true])
      if ((await this.#client.read('contact', provider_entity_id, { is_archived })) !== null) return true;
    return false;
  }

  async pushInvoice(invoice: PushedInvoice): Promise<ProviderRecord> {
    // Refuses amounts before anything is created.
    toLineInputs(invoice, '');
    const earlier = hasBegun(invoice) ? await this.#records.find('invoice', invoice.invoice_id) : null;
    const { record, is_new } =
      earlier === null ? await this.#createInvoice(invoice) : { record: earlier, is_new: false };
    if (is_new) return await this.#issue(record.id, invoice);
    switch (readInvoiceStatus(record)) {
      case 'draft':
        await this.#clear(record.id);
        return await this.#issue(record.id, invoice);
      case 'void':
        // A person has voided it. Our id is removed, so that the next invoice can have it.
        await this.#records.release('invoice', record.id);
        return await this.pushInvoice({ ...invoice, is_key_renewed: true });
      default:
        return checkIssued(record, invoice);
    }
  }

  async #createInvoice(invoice: PushedInvoice) {
    try {
      return await this.#records.create('invoice', invoice.invoice_id, toInvoiceInput(invoice));
    } catch (error) {
      throw explainCurrency(error, 'hs_currency', invoice);
    }
  }

  /** Adds the lines to the draft, compares the total and opens it. Deletes the draft if HubSpot refuses a step. */
  async #issue(id: string, invoice: PushedInvoice): Promise<ProviderRecord> {
    try {
      const { line_items, discounts } = toLineInputs(invoice, id);
      await this.#client.createAll('line_item', line_items);
      await this.#client.createAll('discount', discounts);
      const draft = await this.#readComputed(id, invoice);
      if (!isEqual(draft, invoice)) throw describeDifference(draft, invoice, 'where it was deleted');
      await this.#client.update('invoice', id, { hs_invoice_status: 'open' });
    } catch (error) {
      if (isRefused(error)) await this.#discard(id);
      throw error;
    }
    const opened = await this.#client.read('invoice', id);
    if (opened === null || isEqual(opened, invoice)) return toRecord(opened ?? { id, properties: {} });
    await this.voidInvoice(id);
    throw describeDifference(opened, invoice, 'where it was voided');
  }

  /** Reads the draft until its total is computed. A total below ours may lack some of the lines, and one above it some of the discounts. */
  async #readComputed(id: string, { total, lines }: PushedInvoice): Promise<HubSpotRecord> {
    const hasDiscounts = lines.some(({ amount }) => new Decimal(amount).isNegative());
    for (let reads = 1; ; reads++) {
      const draft = await this.#client.read('invoice', id);
      if (draft === null) throw new ProviderError('wait', `HubSpot: the draft ${id} cannot be read`);
      const billed = readAmount(draft, 'hs_amount_billed');
      const isComputed = hasDiscounts ? billed.eq(total) : billed.gte(total);
      if (isComputed || (reads === TOTAL_READS_MAX && billed.gt(0))) return draft;
      if (reads === TOTAL_READS_MAX)
        throw new ProviderError('wait', `HubSpot: the total of the draft ${id} is not computed yet`);
      await wait(TOTAL_PAUSE_MS);
    }
  }

  async findInvoice({ invoice_id }: SearchedInvoice): Promise<ProviderRecord | null> {
    const found = await this.#records.find('invoice', invoice_id);
    return found === null || readInvoiceStatus(found) === 'void' ? null : toRecord(found);
  }

  async voidInvoice(provider_entity_id: string): Promise<void> {
    const invoice = await this.#client.read('invoice', provider_entity_id);
    if (invoice === null) return;
    const status = readInvoiceStatus(invoice);
    if (status === 'void') return;
    if (status === 'draft') return await this.#discard(provider_entity_id);
    const due = readAmount(invoice, 'hs_balance_due');
    if (status === 'paid' || (due.gt(0) && due.lt(readAmount(invoice, 'hs_amount_billed'))))
      throw new ProviderError(
        'person',
        `the invoice ${provider_entity_id} has payments at HubSpot, so it cannot be voided`,
      );
    await this.#client.update('invoice', provider_entity_id, { hs_invoice_status: 'voided' });
  }

  /** Deletes the lines of a draft. */
  async #clear(id: string): Promise<void> {
    for (const type of ['line_item', 'discount'] as const)
      await this.#client.deleteAll(type, await this.#client.listAssociated('invoice', id, type));
  }

  /** Deletes a draft. Our id is removed first, because the next attempt creates an invoice with it. */
  async #discard(id: string): Promise<void> {
    await this.#clear(id);
    try {
      await this.#records.release('invoice', id);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    await this.#client.delete('invoice', id);
  }

  async pullInvoice(provider_entity_id: string): Promise<ProviderInvoice | null> {
    const invoice = await this.#client.read('invoice', provider_entity_id);
    if (invoice === null) return null;
    const ids = await this.#client.listAssociated('invoice', provider_entity_id, 'payment');
    return toProviderInvoice(invoice, await this.#client.readAll('payment', ids));
  }

  async pushPayment(payment: PushedPayment): Promise<ProviderRecord> {
    const { payment_id, amount, currency } = payment;
    const earlier = hasBegun(payment) ? await this.#records.find('payment', payment_id) : null;
    const { record, is_new } =
      earlier === null
        ? await this.#records.create('payment', payment_id, toPaymentInput(payment))
        : { record: earlier, is_new: false };
    const there = readAmount(record, 'hs_initial_amount');
    const there_currency = (record.properties['hs_currency_code'] ?? currency).toLowerCase();
    if (there.equals(amount) && there_currency === currency) return toRecord(record);
    if (is_new) {
      await this.#records.release('payment', record.id);
      await this.#client.delete('payment', record.id);
    }
    throw new ProviderError(
      'person',
      `the amount of payment ${payment_id} is ${amount} ${currency}, but ${there.toFixed()} ${there_currency} at HubSpot, ${describeEnd(is_new)} (${record.id})`,
    );
  }

  async listConcernedInvoices({ kind, provider_entity_id }: ProviderEventSubject): Promise<readonly string[]> {
    if (kind === 'invoice') return [provider_entity_id];
    return kind === 'payment' ? await this.#client.listAssociated('payment', provider_entity_id, 'invoice') : [];
  }
}

/** Returns what a person can do about a refused currency; any other error is returned unchanged. */
function explainCurrency(error: unknown, property: string, { currency }: { readonly currency: string }): unknown {
  if (!isRefused(error) || !error.message.includes(property)) return error;
  const { message, provider_code } = error;
  const why = `HubSpot does not accept the currency ${currency}: add it to the account there (${message})`;
  return new ProviderError('person', why, { provider_code });
}

/** Returns the invoice of an earlier attempt. A different one stays, because a person may have edited it. */
function checkIssued(found: HubSpotRecord, invoice: PushedInvoice): ProviderRecord {
  if (isEqual(found, invoice)) return toRecord(found);
  throw describeDifference(found, invoice, describeEnd(false));
}

function isEqual(there: HubSpotRecord, { total, currency }: PushedInvoice): boolean {
  return readAmount(there, 'hs_amount_billed').equals(total) && readCurrency(there) === currency;
}

function describeDifference(there: HubSpotRecord, { invoice_id, total, currency }: PushedInvoice, end: string) {
  const billed = readAmount(there, 'hs_amount_billed').toFixed();
  return new ProviderError(
    'person',
    `the total of invoice ${invoice_id} is ${new Decimal(total).toFixed()} ${currency}, but ${billed} ${readCurrency(there)} at HubSpot, ${end} (${there.id})`,
  );
}

function describeEnd(isDeleted: boolean): string {
  return isDeleted ? 'where it was deleted' : 'correct or delete it there';
}

function toRecord(record: HubSpotRecord): ProviderRecord {
  return { provider_entity_id: record.id, url: readUrl(record) };
}
