/** An invoice of HubSpot as pulled, with the payments that are associated with it. */

import { Decimal } from '../../core/foundation/decimal.ts';
import type { ReportedPayment } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { toInstantText } from '../webhook-parts.ts';
import { type HubSpotRecord, ID_PROPERTY } from './records.ts';

const INVOICE_STATUSES: Readonly<Record<string, ProviderInvoice['invoice_status']>> = {
  draft: 'draft',
  open: 'open',
  paid: 'paid',
  voided: 'void',
};

/** A disputed payment is counted, because the dispute may be won. */
const PAYMENT_STATUSES: Readonly<Record<string, ReportedPayment['payment_status']>> = {
  processing: 'pending',
  succeeded: 'succeeded',
  failed: 'failed',
  partially_refunded: 'succeeded',
  refunded: 'refunded',
  processing_refund: 'succeeded',
  disputed_won: 'succeeded',
  disputed_lost: 'succeeded',
  disputed_action_required: 'succeeded',
  disputed_awaiting_decision: 'succeeded',
};

export function toProviderInvoice(invoice: HubSpotRecord, payments: readonly HubSpotRecord[]): ProviderInvoice {
  const currency = readCurrency(invoice);
  return {
    provider_entity_id: invoice.id,
    url: readUrl(invoice),
    invoice_status: readInvoiceStatus(invoice),
    total: readAmount(invoice, 'hs_amount_billed').toFixed(),
    currency,
    payments: payments.map((payment) => toReportedPayment(payment, currency)),
  };
}

export function readInvoiceStatus({ id, properties }: HubSpotRecord): ProviderInvoice['invoice_status'] {
  const status = properties['hs_invoice_status'] ?? 'draft';
  const known = INVOICE_STATUSES[status];
  if (known !== undefined) return known;
  throw new ProviderError('person', `the invoice ${id} at HubSpot has the unknown status ${JSON.stringify(status)}`);
}

export function readCurrency({ properties }: HubSpotRecord): string {
  return (properties['hs_currency'] ?? '').toLowerCase();
}

/** Page on which the customer sees the invoice; it exists once the invoice is open. */
export function readUrl({ properties }: HubSpotRecord): string | null {
  return properties['hs_invoice_link'] || null;
}

/** Reads an amount; an absent one is 0. */
export function readAmount({ properties }: HubSpotRecord, name: string): Decimal {
  return new Decimal(properties[name] || 0);
}

/** Our id of a pushed payment. The payment of an invoice that was marked as paid by hand has the id of the invoice. */
const REPORTED = /^(?:pay|inv)_[0-9A-Z]{26}$/;

function toReportedPayment(payment: HubSpotRecord, invoice_currency: string): ReportedPayment {
  const { id, properties } = payment;
  const status = properties['hs_latest_status'] ?? '';
  const payment_status = PAYMENT_STATUSES[status];
  if (payment_status === undefined)
    throw new ProviderError('person', `the payment ${id} at HubSpot has the unknown status ${JSON.stringify(status)}`);
  if (readAmount(payment, 'hs_number_of_associated_invoices').gt(1))
    throw new ProviderError('person', `the payment ${id} at HubSpot is for several invoices: record it by hand`);
  const amount = readAmount(payment, 'hs_initial_amount');
  const refunded = readAmount(payment, 'hs_refunds_amount');
  const ours = properties[ID_PROPERTY] ?? '';
  return {
    provider_payment_id: id,
    payment_status,
    amount: amount.toFixed(),
    currency: (properties['hs_currency_code'] || invoice_currency).toLowerCase(),
    paid_at: toInstantText(properties['hs_initiated_date']),
    refunded_amount: (payment_status === 'refunded' && refunded.isZero() ? amount : refunded).toFixed(),
    provider_tax: null,
    reported_payment_id: REPORTED.test(ours) ? ours : null,
  };
}
