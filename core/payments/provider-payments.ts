/**
 * Compares the payments that a provider reports for an invoice with those that are recorded (docs/rules/payments.md, "Paid at a
 * provider"). A payment is recorded once, with the amount that was paid. A state that the provider reported earlier never undoes a later one.
 */
import { Decimal } from '../foundation/decimal.ts';
import type { Invoice } from '../invoicing/invoice/record.ts';
import { RECEIVED } from './moves.ts';
import type { Payment } from './record.ts';

export type ReportedPayment = {
  readonly provider_payment_id: string;
  readonly payment_status: 'succeeded' | 'pending' | 'failed' | 'refunded';
  /** The amount that the provider says was paid, in currency units as decimal text. */
  readonly amount: string;
  readonly currency: string;
  readonly paid_at: string | null;
  /** Part of the amount that the provider returned to the customer; 0 without refunds. */
  readonly refunded_amount: string;
  /** Tax that a merchant of record added and owes itself; it is no part of `amount`. Null elsewhere. */
  readonly provider_tax: string | null;
  /** Payment of this service that the provider was sent or requested to make; null or absent for a payment that was made there. */
  readonly reported_payment_id?: string | null;
};

export type ReportedInvoice = {
  readonly invoice_status: 'draft' | 'open' | 'paid' | 'void' | 'uncollectible';
  /** All payments that the provider knows, also failed and refunded ones. */
  readonly payments: readonly ReportedPayment[];
};

type RecordedPayment = Pick<
  Payment,
  | 'id'
  | 'connection_id'
  | 'gateway_payment_id'
  | 'gateway_tracking_id'
  | 'payment_gateway'
  | 'payment_status'
  | 'amount'
  | 'refunded_amount'
  | 'currency'
>;

type ReportInput = {
  readonly invoice: Pick<Invoice, 'invoice_status' | 'currency' | 'amount_remaining'>;
  readonly recorded: readonly RecordedPayment[];
  /** Payments of this service that the provider was sent: their ids there. */
  readonly sent_ids: ReadonlySet<string>;
  /** Ids there of payments of this service that were sent, by payment. */
  readonly pushed_ids: ReadonlyMap<string, string>;
  /** A payment is being sent to the provider, so a reported one may be it. */
  readonly is_sending: boolean;
  readonly connection_id: string;
  readonly provider_type: string;
  readonly reported: ReportedInvoice;
};

type ReportPlan = {
  /** Payments to record. */
  readonly received: readonly ReportedPayment[];
  /** Differences that a person has to resolve. */
  readonly differences: readonly string[];
  /** Whether the invoice is to be read again, because it is not known yet whose payment was reported. */
  readonly is_undecided: boolean;
};

export function planReport(input: ReportInput): ReportPlan {
  const { invoice, recorded, sent_ids, reported, provider_type } = input;
  const known = new Set(recorded.map(({ gateway_payment_id }) => gateway_payment_id));
  const isOurs = ({ provider_payment_id: id, reported_payment_id }: ReportedPayment) =>
    known.has(id) || sent_ids.has(id) || Boolean(reported_payment_id);
  const paid = reported.payments.filter((payment) => hasBrought(payment) && !isOurs(payment));
  const differences = describeChanged(input);
  if (paid.length === 0) return { received: [], differences, is_undecided: false };
  if (invoice.invoice_status === 'DRAFT' || isUncertain(input))
    return { received: [], differences, is_undecided: true };
  if (invoice.invoice_status !== 'FINALIZED') {
    const unwanted = paid.map((one) => `${describe(one)} pays an invoice that is ${invoice.invoice_status}`);
    return { received: [], differences: unwanted, is_undecided: false };
  }
  const foreign = paid.filter(({ currency }) => currency !== invoice.currency);
  const uncounted = foreign.map((one) => `${describe(one)} is not in ${invoice.currency}, the currency of the invoice`);
  return {
    received: paid.filter((one) => !foreign.includes(one)),
    differences: [...differences, ...uncounted],
    is_undecided: false,
  };

  function describe({ provider_payment_id, amount, currency }: ReportedPayment): string {
    return `payment ${provider_payment_id} of ${amount} ${currency} at ${provider_type}`;
  }
}

function hasBrought({ payment_status, amount }: ReportedPayment): boolean {
  return (payment_status === 'succeeded' || payment_status === 'refunded') && new Decimal(amount).gt(0);
}

/** The id of a charge that is being requested is not known yet. */
function isUncertain({ recorded, provider_type, is_sending }: ReportInput): boolean {
  return (
    is_sending ||
    recorded.some(
      ({ payment_gateway, payment_status, gateway_tracking_id, gateway_payment_id }) =>
        payment_gateway === provider_type &&
        (payment_status === 'PROCESSING' || payment_status === 'INITIATED') &&
        Boolean(gateway_tracking_id) &&
        !gateway_payment_id,
    )
  );
}

/** Payments that the provider has reported or was sent, and has with another amount or no longer. A person may have changed them there. */
function describeChanged({ recorded, connection_id, pushed_ids, reported, provider_type }: ReportInput): string[] {
  const received = recorded.filter(({ payment_status }) => RECEIVED.includes(payment_status));
  return received.flatMap(({ id, gateway_payment_id, amount, currency, ...payment }) => {
    const pushed_id = pushed_ids.get(id);
    const id_there = pushed_id ?? (payment.connection_id === connection_id ? gateway_payment_id : null);
    if (!id_there) return [];
    const found = reported.payments.find(({ provider_payment_id }) => provider_payment_id === id_there);
    const there = new Decimal(found && hasBrought(found) ? found.amount : 0);
    // The invoice there may have taken a part of a payment that was sent.
    if (there.eq(amount) || (pushed_id !== undefined && there.gt(0))) return [];
    return [`payment ${id} of ${amount} ${currency} is ${there.toFixed()} at ${provider_type} (${id_there})`];
  });
}

/** A charge pays the invoice at the provider before it is booked here. */
export function isCharging(
  recorded: readonly Pick<Payment, 'payment_gateway' | 'payment_status'>[],
  provider_type: string,
): boolean {
  return recorded.some(
    ({ payment_gateway, payment_status }) =>
      payment_gateway === provider_type && (payment_status === 'PROCESSING' || payment_status === 'INITIATED'),
  );
}

/** Null unless the customer can no longer pay an invoice there that is open here. The report is recorded first. */
export function describeClosed({
  invoice,
  reported: { invoice_status },
  provider_type,
}: Pick<ReportInput, 'invoice' | 'reported' | 'provider_type'>): string | null {
  if (invoice_status === 'draft' || invoice_status === 'open') return null;
  const isOpen = invoice.invoice_status === 'FINALIZED' && new Decimal(invoice.amount_remaining).gt(0);
  return isOpen
    ? `the invoice is ${invoice_status} at ${provider_type}, but ${invoice.amount_remaining} is open`
    : null;
}

type ReportedRefund<Recorded> = { readonly payment: Recorded; readonly amount: Decimal };

/** Refunds that were made at the provider: the part that the recorded payments do not contain yet. */
export function listReportedRefunds<Recorded extends RecordedPayment>(
  recorded: readonly Recorded[],
  reported: ReportedInvoice,
): ReportedRefund<Recorded>[] {
  return reported.payments.flatMap(({ provider_payment_id, refunded_amount, currency }) => {
    const payment = recorded.find(({ gateway_payment_id }) => gateway_payment_id === provider_payment_id);
    if (!payment || payment.currency !== currency) return [];
    const amount = computeReportedRefund(payment, refunded_amount);
    return amount.gt(0) ? [{ payment, amount }] : [];
  });
}

/** The part of the refunds at the provider that the payment does not contain yet; 0 for a payment that was not received. */
export function computeReportedRefund(payment: RecordedPayment, refunded_amount: string): Decimal {
  if (!RECEIVED.includes(payment.payment_status)) return new Decimal(0);
  return Decimal.max(Decimal.min(refunded_amount, payment.amount).minus(payment.refunded_amount), 0);
}

/** Whether periodic reading can stop: the invoice is paid or void at the provider. Later changes arrive by webhook. */
export function isReportFinal({ invoice_status }: ReportedInvoice): boolean {
  return invoice_status === 'paid' || invoice_status === 'void';
}
