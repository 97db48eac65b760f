/**
 * States of Moyasar (docs.moyasar.com/payment-status-reference, /api/invoices/01-create-invoice) as they are read here. An unknown state is
 * refused, because it may mean that money moved; a person has to decide.
 */
import type { ReportedPayment } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import type { PaymentOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { fromSmallestUnits } from './amounts.ts';
import type { MoyasarInvoice, MoyasarPayment } from './records.ts';

const INVOICE_STATUSES: Readonly<Record<string, ProviderInvoice['invoice_status']>> = {
  initiated: 'open',
  // An attempt has failed; the page remains open.
  failed: 'open',
  on_hold: 'open',
  paid: 'paid',
  refunded: 'paid',
  voided: 'paid',
  canceled: 'void',
  expired: 'void',
};

const PAYMENT_STATUSES: Readonly<Record<string, ReportedPayment['payment_status']>> = {
  initiated: 'pending',
  authorized: 'pending',
  paid: 'succeeded',
  captured: 'succeeded',
  refunded: 'refunded',
  // The payment was taken back before it was settled: all of its money was returned.
  voided: 'refunded',
  failed: 'failed',
  abandoned: 'failed',
  canceled: 'failed',
  expired: 'failed',
  // A card was checked; no money was paid.
  verified: 'failed',
};

export function findInvoiceStatus(invoice: MoyasarInvoice): ProviderInvoice['invoice_status'] {
  return findStatus(INVOICE_STATUSES, invoice);
}

function findStatus<Status>(
  statuses: Readonly<Record<string, Status>>,
  { id, status }: { readonly id: string; readonly status: string },
): Status {
  const known = Object.hasOwn(statuses, status) ? statuses[status] : undefined;
  if (known === undefined)
    throw new ProviderError('person', `${id} has the status ${status} at Moyasar`, { is_of_record: true });
  return known;
}

export function toReportedPayment(payment: MoyasarPayment): ReportedPayment {
  const { id, currency, captured_at, created_at } = payment;
  const payment_status = findStatus(PAYMENT_STATUSES, payment);
  const isPaid = payment_status === 'succeeded' || payment_status === 'refunded';
  return {
    provider_payment_id: id,
    payment_status,
    amount: readReceived(payment),
    currency: currency.toLowerCase(),
    // Moyasar reports no time of a payment that is captured at once, other than that of its creation.
    paid_at: isPaid ? new Date(captured_at ?? created_at).toISOString() : null,
    refunded_amount: readRefunded(payment),
    provider_tax: null,
    // The customer has to confirm the payment.
    ...(payment.status === 'initiated' ? { is_for_customer: true } : {}),
  };
}

/** Amount that was received. A captured payment may have been captured in part. */
export function readReceived({ amount, captured, currency }: MoyasarPayment): string {
  return fromSmallestUnits(Number(captured) > 0 ? captured : amount, currency);
}

function readRefunded(payment: MoyasarPayment): string {
  return payment.status === 'voided' ? readReceived(payment) : fromSmallestUnits(payment.refunded, payment.currency);
}

export function toPaymentOutcome(payment: MoyasarPayment): PaymentOutcome {
  const { id, status, source } = payment;
  const gateway_payment_id = id;
  switch (findStatus(PAYMENT_STATUSES, payment)) {
    case 'succeeded':
    case 'refunded': {
      const refunded_amount = readRefunded(payment);
      return { outcome: 'succeeded', gateway_payment_id, ...(refunded_amount === '0' ? {} : { refunded_amount }) };
    }
    case 'failed':
      return { outcome: 'failed', gateway_payment_id, error: `${status}: ${source?.message || 'nothing was paid'}` };
    case 'pending': {
      const url = status === 'initiated' ? (source?.transaction_url ?? null) : null;
      return { outcome: 'processing', gateway_payment_id, url, check_at: null };
    }
  }
}

/** Outcome of a page by its own state; the payment of a paid page decides, if it is known. */
export function toPageOutcome(page: MoyasarInvoice): PaymentOutcome {
  const { id, status, url } = page;
  switch (findInvoiceStatus(page)) {
    case 'paid':
      return { outcome: 'succeeded', gateway_payment_id: id };
    case 'void':
      return { outcome: 'failed', gateway_payment_id: id, error: `${status}: the page was closed before it was paid` };
    default:
      return { outcome: 'processing', gateway_payment_id: id, url, check_at: null };
  }
}

/** Finds the payment that paid an invoice; null if there is none. */
export function findPaid({ payments }: MoyasarInvoice): MoyasarPayment | null {
  const isPaid = (payment: MoyasarPayment) => ['succeeded', 'refunded'].includes(findStatus(PAYMENT_STATUSES, payment));
  return payments?.find(isPaid) ?? null;
}
