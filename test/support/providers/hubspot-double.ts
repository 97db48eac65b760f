import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import { HubSpotFake, signHubSpotRequest } from './hubspot-fake.ts';
import { type CrmType, TYPES } from './hubspot-fake-crm.ts';
import {
  type CallFailure,
  findPattern,
  type InvoiceCopy,
  type ProviderDouble,
  type RequestPatterns,
  type SignedWebhook,
} from './provider-double.ts';

const REQUESTS: RequestPatterns = {
  customer: /^POST 0-1$/,
  invoice: /^POST 0-53$/,
  payment: /^POST 0-101$/,
  subscription: /^POST 0-3$/,
  read: /^GET 0-53\/\d+$/,
};

const STATUSES: Readonly<Record<string, InvoiceCopy['status']>> = {
  draft: 'draft',
  open: 'open',
  paid: 'paid',
  voided: 'void',
};

export class HubSpotDouble implements ProviderDouble {
  readonly provider_type = 'hubspot';
  readonly currency = 'usd';
  readonly fake = new HubSpotFake();
  readonly #events: object[] = [];
  #count = 0;

  get secrets() {
    return this.fake.secrets;
  }

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    this.fake.disturb(findPattern(REQUESTS, request), failure === 'fault' ? 'unavailable' : failure);
  }

  listCustomers(customer_id: string): string[] {
    return this.#listOwn('contacts', customer_id).map(({ id }) => id);
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    return this.#listOwn('invoices', invoice_id).map(({ id, properties }) => ({
      id,
      status: STATUSES[properties['hs_invoice_status']!]!,
      remaining: properties['hs_balance_due']!,
    }));
  }

  listSentPayments(payment_id: string): string[] {
    return this.#listOwn('commerce_payments', payment_id).map(({ properties }) => properties['hs_initial_amount']!);
  }

  listDeals(subscription_id: string): string[] {
    return this.#listOwn('deals', subscription_id).map(({ properties }) => {
      return `${properties['dealstage']} ${properties['amount']}`;
    });
  }

  listSentNotes(): string[] {
    return [];
  }

  /** A person records a payment of the invoice. */
  payCopy(copy_id: string): string {
    const { crm } = this.fake;
    const { hs_balance_due, hs_currency } = crm.get('invoices', copy_id).properties;
    const { id } = crm.create('commerce_payments', {
      properties: {
        hs_initial_amount: hs_balance_due,
        hs_currency_code: hs_currency,
        hs_initiated_date: new Date().toISOString(),
        hs_latest_status: 'succeeded',
      },
      associations: [
        { to: { id: copy_id }, types: [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId: 542 }] },
      ],
    });
    this.#addEvent('object.creation', { objectTypeId: TYPES.commerce_payments, objectId: Number(id) });
    this.#addEvent('object.associationChange', {
      ...{ fromObjectTypeId: TYPES.commerce_payments, fromObjectId: Number(id), associationRemoved: false },
      ...{ toObjectTypeId: TYPES.invoices, toObjectId: Number(copy_id), associationTypeId: 542 },
    });
    return id;
  }

  deletePayment(id: string): void {
    this.fake.crm.archive('commerce_payments', id);
    this.#addEvent('object.deletion', { objectTypeId: TYPES.commerce_payments, objectId: Number(id) });
  }

  editPayment(id: string, amount: string): void {
    this.#change('commerce_payments', id, { hs_initial_amount: amount });
  }

  /** A person changes the price of a line of the open invoice. */
  editCopy(copy_id: string, total: string): void {
    const [line_id = ''] = this.fake.crm.listLinked('invoices', copy_id, 'line_items');
    this.fake.crm.update('line_items', line_id, { price: total });
    this.#change('invoices', copy_id, {}, 'hs_amount_billed');
  }

  voidCopy(copy_id: string): void {
    this.#change('invoices', copy_id, { hs_invoice_status: 'voided' });
  }

  /** The account adds a tax of its own. */
  alterInvoices(isAltered: boolean): void {
    this.fake.crm.tax_rate = isAltered ? '0.1' : '0';
  }

  /** HubSpot has no keys. */
  forgetKeys(): void {}

  readonly unused_events = ['contact.propertyChange', 'deal.creation', 'line_item.deletion'];

  /** Events of the page are the subscription type and the object, such as `object.creation invoice`. */
  buildWebhook(event: string): object {
    const [subscriptionType, object = ''] = event.split(' ');
    const objectTypeId = { invoice: TYPES.invoices, commerce_payment: TYPES.commerce_payments }[object];
    return [this.#describeEvent(subscriptionType!, { objectTypeId, objectId: 7 })];
  }

  listNamedEvents(section: string): string[] {
    const list = (cell: string) => [...cell.matchAll(/`([\w.]+)`/g)].map(([, name]) => name);
    return [...section.matchAll(/^\| (`object[^|]+) \| ([^|]+) \|/gm)].flatMap(([, events = '', objects = '']) =>
      list(events).flatMap((event) => list(objects).map((object) => `${event} ${object}`)),
    );
  }

  takeWebhooks(): SignedWebhook[] {
    if (this.#events.length === 0) return [];
    const body = JSON.stringify(this.#events.splice(0));
    const timestamp = String(Date.now());
    const sign = (url: string) => ({
      'x-hubspot-request-timestamp': timestamp,
      'x-hubspot-signature-v3': signHubSpotRequest({ method: 'POST', url, body, timestamp }, this.fake.client_secret),
    });
    return [{ headers: {}, body, sign }];
  }

  #change(type: 'invoices' | 'commerce_payments', id: string, properties: Record<string, string>, computed?: string) {
    this.fake.crm.update(type, id, properties);
    for (const propertyName of [...Object.keys(properties), ...(computed ? [computed] : [])])
      this.#addEvent('object.propertyChange', { objectTypeId: TYPES[type], objectId: Number(id), propertyName });
  }

  #addEvent(subscriptionType: string, fields: object): void {
    this.#events.push(this.#describeEvent(subscriptionType, fields));
  }

  #describeEvent(subscriptionType: string, fields: object): object {
    const eventId = ++this.#count;
    const ids = { eventId, subscriptionId: 1, portalId: Number(this.fake.portal_id), appId: 12345 };
    return { ...ids, occurredAt: Date.now(), subscriptionType, attemptNumber: 0, changeSource: 'CRM_UI', ...fields };
  }

  #listOwn(type: CrmType, our_id: string) {
    return this.fake.crm.list(type).filter(({ properties }) => properties['farthing_id'] === our_id);
  }
}
