/** An invoice of Stripe as pulled: its status, and the payments that Stripe counts towards it. */
import type { Stripe } from 'stripe';
import {
  type ReportedCredit,
  type ReportedPayment,
  type ReportedRefund,
  sumSucceeded,
} from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { sumMinorUnits } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';
import { fromMinorUnits } from './amounts.ts';
import { toRefundOutcome } from './payment-outcome.ts';

export type RefundsById = ReadonlyMap<string, readonly ReportedRefund[]>;

/** Path in a list of payments that expands their payment intents. */
export const PAYMENTS_EXPANDED = 'data.payment.payment_intent';
/** Path in a list of payments that expands the payment records, which `pushPayment` creates. */
export const RECORDS_EXPANDED = 'data.payment.payment_record';

/** Records that are read beside the invoice. */
type PulledMoney = {
  readonly payments: readonly Stripe.InvoicePayment[];
  readonly refunded: RefundsById;
  readonly credits: readonly ReportedCredit[];
};

export function toProviderInvoice(
  invoice: Stripe.Invoice,
  { payments, refunded, credits }: PulledMoney,
): ProviderInvoice {
  return {
    provider_entity_id: invoice.id,
    url: invoice.hosted_invoice_url ?? null,
    invoice_status: toInvoiceStatus(invoice),
    total: fromMinorUnits(invoice.total, invoice.currency),
    currency: invoice.currency,
    payments: payments.map((payment) => toProviderPayment(payment, refunded)).filter((payment) => payment !== null),
    credits,
  };
}

const INVOICE_STATUSES: readonly ProviderInvoice['invoice_status'][] = [
  'draft',
  'open',
  'paid',
  'void',
  'uncollectible',
];

function toInvoiceStatus({ id, status }: Stripe.Invoice): ProviderInvoice['invoice_status'] {
  const known = INVOICE_STATUSES.find((name) => name === status);
  if (known === undefined) throw new ProviderError('person', `the invoice ${id} has the status ${status} at Stripe`);
  return known;
}

/** Converts a payment; null if nobody has tried to pay, because Stripe creates a payment intent with the invoice. */
function toProviderPayment(payment: Stripe.InvoicePayment, refunded: RefundsById): ReportedPayment | null {
  const { amount_paid, amount_requested, currency, status, status_transitions } = payment;
  const provider_payment_id = toPaymentId(payment);
  const refunds = refunded.get(provider_payment_id) ?? [];
  const refunded_amount = sumSucceeded(refunds);
  const common = {
    ...{ provider_payment_id, currency, refunded_amount, refunds, provider_tax: null },
    reported_payment_id: toReportedPaymentId(payment),
    is_outside: toRefundQuery(payment) === null,
  };
  if (status === 'paid' && amount_paid !== null) {
    const amount = fromMinorUnits(amount_paid, currency);
    return { ...common, payment_status: 'succeeded', amount, paid_at: toInstant(status_transitions.paid_at) };
  }
  const payment_status = toUnpaidStatus(payment);
  if (payment_status === null) return null;
  const amount = fromMinorUnits(amount_requested, currency);
  return { ...common, payment_status, amount, paid_at: null, ...toCustomerWait(payment) };
}

/** Marks a payment that may wait for its customer forever. Micro-deposits are excluded, because Stripe ends such a payment itself. */
function toCustomerWait({ payment: { payment_intent } }: Stripe.InvoicePayment) {
  if (payment_intent === undefined || typeof payment_intent === 'string') return {};
  const { status, next_action } = payment_intent;
  const isWaiting = status === 'requires_action' || status === 'requires_confirmation';
  return isWaiting && !next_action?.verify_with_microdeposits ? { is_for_customer: true } : {};
}

/** Derives the status of an unpaid payment. Stripe retains the error of a declined attempt until the next attempt. */
function toUnpaidStatus({ payment: { payment_intent } }: Stripe.InvoicePayment): 'pending' | 'failed' | null {
  if (payment_intent === undefined || typeof payment_intent === 'string') return null;
  const { status, last_payment_error } = payment_intent;
  if (status === 'requires_payment_method' || status === 'canceled')
    return last_payment_error === null ? null : 'failed';
  return 'pending';
}

/**
 * Reads our payment id from the metadata; null if Stripe or a person made the payment. Provider ids cannot replace it:
 * for a payment page, only the id of its Checkout session is stored here until the outcome is read.
 */
export function toReportedPaymentId({
  payment: { payment_intent, payment_record },
}: Stripe.InvoicePayment): string | null {
  const paid = payment_record ?? payment_intent;
  if (paid === undefined || typeof paid === 'string') return null;
  return paid.metadata['farthing_payment_id'] ?? null;
}

/**
 * Selects the id by which events name the payment, or the id of the invoice payment if there is none, e.g. for money
 * outside Stripe.
 */
function toPaymentId({ id, payment: { payment_intent, charge, payment_record } }: Stripe.InvoicePayment): string {
  const paid = payment_intent ?? charge ?? payment_record ?? id;
  return typeof paid === 'string' ? paid : paid.id;
}

/** Selects the refunds of a payment by its id; null for money that Stripe did not move. */
export function toRefundQuery({ payment: { payment_intent, charge } }: Stripe.InvoicePayment) {
  const id = (reference: string | { id: string }) => (typeof reference === 'string' ? reference : reference.id);
  if (payment_intent) return { id: id(payment_intent), by: { payment_intent: id(payment_intent) } };
  return charge ? { id: id(charge), by: { charge: id(charge) } } : null;
}

/** All refunds of a payment. Also one that has succeeded may fail later, if the bank returns the money (docs.stripe.com/refunds). */
export async function listRefunds(
  stripe: Stripe,
  by: { readonly payment_intent: string } | { readonly charge: string },
  currency: string,
): Promise<ReportedRefund[]> {
  const refunds: ReportedRefund[] = [];
  for await (const refund of stripe.refunds.list({ ...by, limit: PAGE })) {
    const outcome = toRefundOutcome(refund);
    refunds.push({
      provider_refund_id: refund.id,
      amount: fromMinorUnits(refund.amount, currency),
      refund_status: outcome.outcome,
      error: outcome.outcome === 'failed' ? outcome.error : null,
      refund_id: refund.metadata?.['farthing_refund_id'] ?? null,
    });
  }
  return refunds;
}

/** Lists the credit notes of an invoice. Their refunds are no part of the amounts, because those are read with the payments. */
export async function listCredits(stripe: Stripe, invoice: Stripe.Invoice): Promise<ReportedCredit[]> {
  const { id, currency, pre_payment_credit_notes_amount, post_payment_credit_notes_amount } = invoice;
  if (pre_payment_credit_notes_amount === 0 && post_payment_credit_notes_amount === 0) return [];
  const credits: ReportedCredit[] = [];
  for await (const note of stripe.creditNotes.list({ invoice: id, limit: PAGE })) {
    if (note.status !== 'issued') continue;
    const refunds = note.refunds.filter(({ type }) => type !== 'payment_record_refund');
    const refunded = sumMinorUnits(refunds.map(({ amount_refunded }) => amount_refunded));
    const credited = sumMinorUnits([note.pre_payment_amount, note.post_payment_amount]).minus(refunded);
    credits.push({
      provider_credit_id: note.id,
      amount: fromMinorUnits(credited.toNumber(), currency),
      reported_credit_note_id: note.metadata?.['farthing_credit_note_id'] ?? null,
    });
  }
  return credits;
}

const PAGE = 100;

function toInstant(seconds: number | null): string | null {
  return seconds === null ? null : new Date(seconds * 1_000).toISOString();
}
