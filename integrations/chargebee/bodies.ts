/** Bodies of pushed records. Texts are shortened to the limits of Chargebee (apidocs.chargebee.com, "Customers", "Invoices"). */

import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { PushedCustomer, PushedInvoice } from '../account.ts';
import { sumMinorUnits } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';
import { cutCharacters } from '../pushed-records.ts';
import { fromCents, toCents } from './amounts.ts';
import type { Form } from './form.ts';

const COMPANY_MAX = 250;
const EMAIL_MAX = 70;
const LINE_MAX = 150;
const PLACE_MAX = 50;
const ZIP_MAX = 20;
const DESCRIPTION_MAX = 250;
const NOTE_MAX = 2_000;
const NET_TERM_DAYS_MAX = 180;

/** Builds a customer that has our id. Chargebee collects nothing from it by itself. */
export function toCustomerForm(customer: PushedCustomer): Form {
  const { customer_id, external_id, name, email, address } = customer;
  const company = name === '' ? external_id : name;
  const hasAddress = Object.values(address).some((text) => text !== '');
  return {
    id: customer_id,
    company: cutCharacters(company, COMPANY_MAX),
    // A shortened address could belong to somebody else.
    email: email.length <= EMAIL_MAX ? email || undefined : undefined,
    auto_collection: 'off',
    meta_data: JSON.stringify({ farthing_customer_id: customer_id, farthing_external_id: external_id }),
    billing_address: hasAddress
      ? {
          company: cutCharacters(company, COMPANY_MAX),
          line1: cutCharacters(address.line1, LINE_MAX) || undefined,
          line2: cutCharacters(address.line2, LINE_MAX) || undefined,
          city: cutCharacters(address.city, PLACE_MAX) || undefined,
          state: cutCharacters(address.state, PLACE_MAX) || undefined,
          zip: cutCharacters(address.postal_code, ZIP_MAX) || undefined,
          country: address.country || undefined,
        }
      : undefined,
  };
}

type Charge = {
  readonly amount: number;
  readonly description: string;
  readonly taxable: boolean;
  readonly date_from?: number | undefined;
  readonly date_to?: number | undefined;
};

/** Builds an invoice of charges without Chargebee's taxes. Throws if the lines do not add up to the total. */
export function toInvoiceForm(invoice: PushedInvoice): Form {
  const { currency, provider_customer_id } = invoice;
  const charges = toCharges(invoice);
  const isTotal = charges.length === 1 && invoice.lines.length > 1;
  const listed = invoice.lines.map(({ description, amount }) => `${description}: ${amount}`);
  const note = [toInvoiceNote(invoice), ...(isTotal ? listed : [])].join('\n');
  return {
    customer_id: provider_customer_id,
    currency_code: currency.toUpperCase(),
    auto_collection: 'off',
    invoice_note: cutCharacters(note, NOTE_MAX),
    charges,
  };
}

/** Note of an invoice, by which a repeated push finds it. The customer sees it. */
function toInvoiceNote({ invoice_number, invoice_id }: PushedInvoice): string {
  return `Invoice ${invoice_number} (${invoice_id})`;
}

/** Whether one of the notes contains our id. People may have added text to the note. */
export function hasId(notes: readonly string[], id: string): boolean {
  return notes.some((note) => note.split(/[^\w-]+/).includes(id));
}

function toCharges(invoice: PushedInvoice): Charge[] {
  const { lines, total, currency, invoice_number } = invoice;
  if (lines.length === 0) throw new ProviderError('person', 'an invoice without lines cannot be sent to Chargebee');
  const charges = lines.map((line) => ({
    amount: toCents(line.amount, currency),
    description: cutCharacters(line.description, DESCRIPTION_MAX),
    taxable: false,
    ...toPeriod(line.period_start, line.period_end),
  }));
  const sum = sumMinorUnits(charges.map(({ amount }) => amount)).toNumber();
  const cents = toCents(total, currency);
  if (sum !== cents)
    throw new ProviderError(
      'person',
      `the lines add up to ${fromCents(sum, currency)} ${currency}, the total is ${total}`,
    );
  if (cents <= 0) throw new ProviderError('person', `an invoice over ${total} ${currency} cannot be sent to Chargebee`);
  // Chargebee has no negative charges. One charge has the total, and the note lists the lines.
  const isNegative = charges.some(({ amount }) => amount < 0);
  return isNegative ? [{ amount: cents, description: `Invoice ${invoice_number}`, taxable: false }] : charges;
}

function toPeriod(period_start: string | null, period_end: string | null) {
  if (period_start === null || period_end === null) return {};
  const date_from = toSeconds(period_start);
  // The end of a period is inclusive at Chargebee.
  return { date_from, date_to: Math.max(date_from, toSeconds(period_end) - 1) };
}

/** Computes the payment term in days; undefined without a due date that lies ahead. */
export function computeNetTermDays({ due_date }: PushedInvoice, now_ms: number): number | undefined {
  if (due_date === null) return undefined;
  const days = Math.ceil((Date.parse(due_date) - now_ms) / DAY_MS);
  return days >= 1 && days <= NET_TERM_DAYS_MAX ? days : undefined;
}

export function toSeconds(instant: string): number {
  return Math.floor(Date.parse(instant) / 1_000);
}
