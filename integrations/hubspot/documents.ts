/**
 * Bodies of pushed records. Each line is one amount with the quantity 1. A negative line is a fixed discount of the
 * invoice, because the documentation names no negative prices.
 */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { minorUnits, parseDecimal } from '../../core/foundation/money.ts';
import type { PushedInvoiceLine } from '../../core/platform/integration/pushed-lines.ts';
import type { PushedCustomer, PushedInvoice, PushedPayment } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { buildAssociation, type HubSpotInput } from './records.ts';

const TEXT_MAX = 1_000;
export const NAME_MAX = 255;

export function toContactInput({ name, external_id, email, address }: PushedCustomer): HubSpotInput {
  const title = cut(name.trim() || external_id, NAME_MAX);
  const properties = {
    email,
    lastname: title,
    company: title,
    ...toAddressInput(address),
  };
  return { properties: Object.fromEntries(Object.entries(properties).filter(([, text]) => text !== '')) };
}

/** Properties of the address, which contacts and companies share; empty texts are not known. */
export function toAddressInput({ line1, line2, city, state, postal_code, country }: PushedCustomer['address']) {
  const address = [line1, line2].filter((line) => line !== '').join(', ');
  return { address, city, state, zip: postal_code, country };
}

export function toInvoiceInput(invoice: PushedInvoice): HubSpotInput {
  const { issued_at, due_date, currency, invoice_number, provider_customer_id } = invoice;
  return {
    properties: {
      hs_currency: currency.toUpperCase(),
      ...(issued_at ? { hs_invoice_date: toInstantText(issued_at) } : {}),
      ...(due_date ? { hs_due_date: toInstantText(due_date) } : {}),
      ...(invoice_number === '' ? {} : { hs_comments: `Invoice ${invoice_number}` }),
    },
    associations: [buildAssociation('invoice_to_contact', provider_customer_id)],
  };
}

type InvoiceLines = { readonly line_items: readonly HubSpotInput[]; readonly discounts: readonly HubSpotInput[] };

/** Builds the lines of an invoice. Throws if HubSpot cannot represent one, or if they do not add up to the total. */
export function toLineInputs({ lines, total, currency }: PushedInvoice, invoice_id: string): InvoiceLines {
  checkSum({ lines, total, currency });
  const isDiscount = ({ amount }: PushedInvoiceLine) => new Decimal(amount).isNegative();
  const line_items = lines
    .filter((line) => !isDiscount(line))
    .map((line) => ({
      properties: {
        name: cut(line.description, NAME_MAX),
        ...describePeriod(line),
        quantity: '1',
        price: toAmount(line.amount, currency),
        hs_line_item_currency_code: currency.toUpperCase(),
      },
      associations: [buildAssociation('line_item_to_invoice', invoice_id)],
    }));
  const discounts = lines.filter(isDiscount).map(({ description, amount }, index) => ({
    properties: {
      hs_label: cut(description, NAME_MAX),
      hs_type: 'FIXED',
      hs_value: toAmount(new Decimal(amount).negated().toFixed(), currency),
      hs_sort_order: String(index),
    },
    associations: [buildAssociation('discount_to_invoice', invoice_id)],
  }));
  return { line_items, discounts };
}

function describePeriod({ period_start, period_end }: PushedInvoiceLine): { description?: string } {
  if (period_start === null || period_end === null) return {};
  return { description: `${toDate(period_start)} – ${toDate(period_end)}` };
}

/** Builds a payment that was received elsewhere. It pays the invoice by its association. */
export function toPaymentInput(payment: PushedPayment): HubSpotInput {
  const { amount, currency, paid_at, reference, provider_invoice_id, provider_customer_id } = payment;
  return {
    properties: {
      hs_initial_amount: toAmount(amount, currency),
      hs_currency_code: currency.toUpperCase(),
      hs_initiated_date: toInstantText(paid_at),
      hs_latest_status: 'succeeded',
      hs_payment_method_type: 'other',
      hs_processor_type: 'none',
      ...(reference === '' ? {} : { hs_reference_number: cut(reference, TEXT_MAX) }),
    },
    associations: [
      buildAssociation('payment_to_invoice', provider_invoice_id),
      buildAssociation('payment_to_contact', provider_customer_id),
    ],
  };
}

function checkSum({ lines, total, currency }: Pick<PushedInvoice, 'lines' | 'total' | 'currency'>): void {
  const sum = sumDecimals(lines.map(({ amount }) => new Decimal(amount)));
  if (!sum.equals(total))
    throw new ProviderError('person', `the lines add up to ${sum.toFixed()} ${currency}, the total is ${total}`);
  if (sum.lte(0)) throw new ProviderError('person', `an invoice over ${total} cannot be sent to HubSpot`);
}

/** Refuses more decimals than the currency has, because HubSpot would round them. */
export function toAmount(amount: string, currency: string): string {
  const value = parseDecimal(amount);
  if (value === undefined) throw new ProviderError('person', `${JSON.stringify(amount)} is not an amount`);
  if (value.decimalPlaces() > minorUnits(currency))
    throw new ProviderError('person', `HubSpot cannot represent ${amount} ${currency}`);
  return value.toFixed();
}

export function toInstantText(instant: string): string {
  return new Date(instant).toISOString();
}

function toDate(instant: string): string {
  return toInstantText(instant).slice(0, 'YYYY-MM-DD'.length);
}

/** Shortens a text without splitting a character. */
export function cut(text: string, length_max: number): string {
  return text.length <= length_max ? text : text.slice(0, length_max).replace(/[\uD800-\uDBFF]$/, '');
}
