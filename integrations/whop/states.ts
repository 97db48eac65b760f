/**
 * States of Whop (docs.whop.com/api-reference, `InvoiceStatus` and `FriendlyReceiptStatus`) as they are read here. An unknown state is
 * refused, because it may mean that money moved; a person has to decide.
 */
import { type Decimal, ZERO } from '../../core/foundation/decimal.ts';
import type { ReportedPayment, ReportedRefund } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import type { PaymentOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { fromWhopAmount } from './amounts.ts';
import { readMetadata, type WhopInvoice, type WhopPayment, type WhopRefund } from './records.ts';

const INVOICE_STATUSES: Readonly<Record<string, ProviderInvoice['invoice_status']>> = {
  draft: 'draft',
  open: 'open',
  past_due: 'open',
  paid: 'paid',
  uncollectible: 'uncollectible',
  void: 'void',
};

type WhopPaymentState = ReportedPayment['payment_status'] | 'waits_for_customer';

const PAYMENT_STATES: Readonly<Record<string, WhopPaymentState>> = {
  succeeded: 'succeeded',
  partially_refunded: 'succeeded',
  refunded: 'refunded',
  auto_refunded: 'refunded',
  pending: 'pending',
  drafted: 'waits_for_customer',
  incomplete: 'waits_for_customer',
  unresolved: 'pending',
  past_due: 'failed',
  failed: 'failed',
  canceled: 'failed',
  price_too_low: 'failed',
  uncollectible: 'failed',
  // The payment was received. A dispute has an event of its own, and a refund its amount.
  dispute_warning: 'succeeded',
  dispute_needs_response: 'succeeded',
  dispute_warning_needs_response: 'succeeded',
  dispute_under_review: 'succeeded',
  dispute_warning_under_review: 'succeeded',
  dispute_won: 'succeeded',
  dispute_warning_closed: 'succeeded',
  dispute_lost: 'succeeded',
  dispute_closed: 'succeeded',
  open_dispute: 'succeeded',
  resolution_needs_response: 'succeeded',
  resolution_under_review: 'succeeded',
  resolution_won: 'succeeded',
  resolution_lost: 'succeeded',
  open_resolution: 'succeeded',
};

const REFUND_STATUSES: Readonly<Record<string, ReportedRefund['refund_status']>> = {
  pending: 'pending',
  requires_action: 'pending',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'failed',
};

function findStatus<Status>(statuses: Readonly<Record<string, Status>>, status: string, id: string): Status {
  const known = Object.hasOwn(statuses, status) ? statuses[status] : undefined;
  if (known === undefined) throw new ProviderError('person', `${id} has the status ${status} at Whop`);
  return known;
}

export function findInvoiceStatus({ id, status }: WhopInvoice): ProviderInvoice['invoice_status'] {
  return findStatus(INVOICE_STATUSES, status, id);
}

export function findRefundStatus({ id, status }: WhopRefund): ReportedRefund['refund_status'] {
  return findStatus(REFUND_STATUSES, status, id);
}

/** A failed payment that Whop will try again may still bring money. */
function findPaymentState({ id, substatus, next_payment_attempt }: WhopPayment): WhopPaymentState {
  const state = findStatus(PAYMENT_STATES, substatus, id);
  return state === 'failed' && next_payment_attempt ? 'pending' : state;
}

export function isPaid(payment: WhopPayment): boolean {
  return ['succeeded', 'refunded'].includes(findPaymentState(payment));
}

export function isFailed(payment: WhopPayment): boolean {
  return findPaymentState(payment) === 'failed';
}

/** Tax that Whop added to the price and owes itself. */
function readAddedTax({ tax_behavior, tax_amount }: WhopPayment): Decimal {
  return tax_behavior === 'exclusive' ? fromWhopAmount(tax_amount) : ZERO;
}

function readAmount(payment: WhopPayment): Decimal {
  return fromWhopAmount(payment.total).minus(readAddedTax(payment));
}

/** Reads the refunds. If their tax was added to the price, only their sum without the tax is known. */
function readRefunds(payment: WhopPayment): { refunded: Decimal; refunds?: readonly ReportedRefund[] } {
  const { refunded_amount, tax_refunded_amount, refunds } = payment;
  const sum = fromWhopAmount(refunded_amount);
  if (!readAddedTax(payment).isZero()) return { refunded: sum.minus(fromWhopAmount(tax_refunded_amount)) };
  return refunds ? { refunded: sum, refunds: refunds.map(toReportedRefund) } : { refunded: sum };
}

function toReportedRefund(refund: WhopRefund): ReportedRefund {
  const refund_status = findRefundStatus(refund);
  return {
    provider_refund_id: refund.id,
    amount: fromWhopAmount(refund.amount).toFixed(),
    refund_status,
    error: refund_status === 'failed' ? `the refund is ${refund.status} at Whop` : null,
    refund_id: null,
  };
}

export function toReportedPayment(payment: WhopPayment): ReportedPayment {
  const { id, currency, created_at, paid_at } = payment;
  const state = findPaymentState(payment);
  const { refunded, ...listed } = readRefunds(payment);
  const tax = readAddedTax(payment);
  return {
    provider_payment_id: id,
    payment_status: state === 'waits_for_customer' ? 'pending' : state,
    amount: readAmount(payment).toFixed(),
    currency: currency.toLowerCase(),
    paid_at: isPaid(payment) ? new Date(paid_at ?? created_at).toISOString() : null,
    refunded_amount: refunded.toFixed(),
    ...listed,
    provider_tax: tax.isZero() ? null : tax.toFixed(),
    reported_payment_id: readMetadata(payment, 'farthing_payment_id'),
    ...(state === 'waits_for_customer' ? { is_for_customer: true } : {}),
  };
}

type RequestedMoney = { readonly amount: string; readonly currency: string };

export function toPaymentOutcome(payment: WhopPayment, requested: RequestedMoney): PaymentOutcome {
  const { id, failure_message, substatus } = payment;
  const gateway_payment_id = id;
  switch (findPaymentState(payment)) {
    case 'succeeded':
    case 'refunded':
      return { outcome: 'succeeded', gateway_payment_id, ...toReceived(payment, requested) };
    case 'failed':
      return { outcome: 'failed', gateway_payment_id, error: failure_message || `the payment is ${substatus} at Whop` };
    default:
      return { outcome: 'processing', gateway_payment_id, url: null, check_at: null };
  }
}

function toReceived(payment: WhopPayment, { amount, currency }: RequestedMoney) {
  const paid_currency = payment.currency.toLowerCase();
  const received = readAmount(payment);
  if (paid_currency !== currency)
    throw new ProviderError(
      'wait',
      `${amount} ${currency} was requested, but Whop received ${received.toFixed()} ${paid_currency} (${payment.id})`,
      { is_of_record: true },
    );
  const { refunded, ...listed } = readRefunds(payment);
  return {
    ...(received.eq(amount) ? {} : { received_amount: received.toFixed() }),
    ...(refunded.isZero() ? {} : { refunded_amount: refunded.toFixed() }),
    ...listed,
  };
}
