/**
 * An invoice of Razorpay and its payments, as pulled (razorpay.com/docs/payments/invoices/states, /docs/api/payments).
 */
import type { Invoices } from 'razorpay/dist/types/invoices.js';
import type { Payments } from 'razorpay/dist/types/payments.js';
import type { ReportedPayment, ReportedRefund } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { fromSubunits } from './amounts.ts';

const INVOICE_STATUSES: Readonly<Record<string, ProviderInvoice['invoice_status']>> = {
  draft: 'draft',
  issued: 'open',
  partially_paid: 'open',
  paid: 'paid',
  cancelled: 'void',
  expired: 'void',
  deleted: 'void',
};

const PAYMENT_STATUSES: Readonly<Record<string, ReportedPayment['payment_status']>> = {
  created: 'pending',
  authorized: 'pending',
  captured: 'succeeded',
  refunded: 'refunded',
  failed: 'failed',
};

/** A payment with its refunds, which its own record does not list. */
export type RefundablePayment = {
  readonly payment: Payments.RazorpayPayment;
  readonly refunds: readonly ReportedRefund[];
  readonly refunded_amount: string;
};

export function toProviderInvoice(
  invoice: Invoices.RazorpayInvoice,
  payments: readonly RefundablePayment[],
): ProviderInvoice {
  const { id, short_url, amount, currency = '' } = invoice;
  return {
    provider_entity_id: id,
    url: short_url ?? null,
    invoice_status: findStatus(INVOICE_STATUSES, invoice),
    total: fromSubunits(Number(amount), currency),
    currency: currency.toLowerCase(),
    payments: payments.map(toProviderPayment),
  };
}

function toProviderPayment({ payment, refunds, refunded_amount }: RefundablePayment): ReportedPayment {
  const { id, amount, currency, created_at } = payment;
  const payment_status = findStatus(PAYMENT_STATUSES, payment);
  const isPaid = payment_status === 'succeeded' || payment_status === 'refunded';
  return {
    provider_payment_id: id,
    payment_status,
    amount: fromSubunits(Number(amount), currency),
    currency: currency.toLowerCase(),
    // Razorpay reports no other time of a payment than that of its creation.
    paid_at: isPaid ? new Date(created_at * 1_000).toISOString() : null,
    ...{ refunded_amount, refunds },
    provider_tax: null,
    // The customer has begun to pay and has to continue.
    ...(payment.status === 'created' ? { is_for_customer: true } : {}),
  };
}

/** Refuses an unknown status, because it may mean that money moved; a person has to decide. */
function findStatus<Status>(
  statuses: Readonly<Record<string, Status>>,
  { id, status = '' }: { readonly id: string; readonly status?: string },
): Status {
  const known = Object.hasOwn(statuses, status) ? statuses[status] : undefined;
  if (known === undefined)
    throw new ProviderError('person', `${id} has the status ${status} at Razorpay`, { is_of_record: true });
  return known;
}
