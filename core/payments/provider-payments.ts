/**
 * Compares the payments that a provider reports for an invoice with the recorded ones (docs/rules/payments.md, "Paid at
 * a provider"). A payment is recorded once, with the amount that was paid. An outdated report never undoes a later
 * state.
 */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import type { Invoice } from '../invoicing/invoice/record.ts';
import { RECEIVED } from './moves.ts';
import type { Payment, PaymentRefund } from './record.ts';

/** Refund of a payment, requested here or made at the provider. */
export type ReportedRefund = {
  readonly provider_refund_id: string;
  readonly amount: string;
  readonly refund_status: 'succeeded' | 'pending' | 'failed';
  /** Reason of a failure. */
  readonly error: string | null;
  /** Id of this service's refund that requested the refund at the provider; null if the refund was made at the provider. */
  readonly refund_id: string | null;
};

export type ReportedPayment = {
  readonly provider_payment_id: string;
  readonly payment_status: 'succeeded' | 'pending' | 'failed' | 'refunded';
  /** Paid amount as the provider reports it, in currency units as decimal text. */
  readonly amount: string;
  readonly currency: string;
  readonly paid_at: string | null;
  /** Part of the amount that the provider returned to the customer; 0 without refunds. */
  readonly refunded_amount: string;
  /** All refunds, if the provider lists them. */
  readonly refunds?: readonly ReportedRefund[];
  /** Tax that a merchant of record added and owes itself; it is no part of `amount`. Null elsewhere. */
  readonly provider_tax: string | null;
  /**
   * Id of this service's payment that was pushed to, or requested from, the provider; null or absent for a payment made at the provider.
   */
  readonly reported_payment_id?: string | null;
  /** True if a pending payment brings money only after the customer acts, which may never happen. */
  readonly is_for_customer?: boolean;
  /** True if the money did not pass through the provider, so the provider cannot refund it. */
  readonly is_outside?: boolean;
};

/** Amount that a credit note, or a similar record of the provider, credits of an invoice. Its refunds are reported with their payments. */
export type ReportedCredit = {
  readonly provider_credit_id: string;
  readonly amount: string;
  /** Our credit note or refund from which the provider was sent the record; null or absent if the provider does not store it. */
  readonly reported_credit_note_id?: string | null;
};

export type ReportedInvoice = {
  /** Customer at the provider who paid, if the provider makes its customers itself; null before a payment, absent elsewhere. */
  readonly provider_customer_id?: string | null;
  readonly invoice_status: 'draft' | 'open' | 'paid' | 'void' | 'uncollectible';
  /** Total without payments and credits. */
  readonly total: string;
  /** ISO 4217, lowercase. */
  readonly currency: string;
  /** Credits that are in force; absent if the provider has none. */
  readonly credits?: readonly ReportedCredit[];
  /** All payments that the provider knows for the invoice, including failed and refunded ones. */
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
  /** Ids of the invoice and of all its payments, also of archived ones, with which payments of this service are marked at the provider. */
  readonly own_ids: ReadonlySet<string>;
  /** Ids at the provider of payments that were pushed to it. */
  readonly sent_ids: ReadonlySet<string>;
  /** Ids at the provider of pushed payments, by the payment id of this service. */
  readonly pushed_ids: ReadonlyMap<string, string>;
  /** Overpaid amounts that were refunded, by payment. The provider was sent the payment less this amount. */
  readonly overpaid: ReadonlyMap<string, Decimal>;
  /** Whether a payment is being sent to the provider. A reported payment may then be this payment. */
  readonly is_sending: boolean;
  readonly connection_id: string;
  readonly provider_type: string;
  readonly reported: ReportedInvoice;
};

type ReportPlan = {
  /** Payments that are not recorded yet. */
  readonly received: readonly ReportedPayment[];
  /** Differences that a person has to resolve. */
  readonly differences: readonly string[];
  /** Whether the invoice must be read again, because a reported payment may be one whose id is not stored yet. */
  readonly is_undecided: boolean;
};

export function planReport(input: ReportInput): ReportPlan {
  const { invoice, reported, provider_type } = input;
  const paid = reported.payments.filter((payment) => hasBrought(payment) && !isOurs(payment, input));
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

/**
 * Whether the reported payment was recorded, pushed or requested by this service. A person may copy a pushed payment together with our payment
 * id; the copy is a separate payment.
 */
function isOurs(
  { provider_payment_id: id, reported_payment_id }: ReportedPayment,
  { recorded, own_ids, sent_ids, pushed_ids }: ReportInput,
): boolean {
  if (sent_ids.has(id) || recorded.some(({ gateway_payment_id }) => gateway_payment_id === id)) return true;
  if (!reported_payment_id || !own_ids.has(reported_payment_id)) return false;
  return (pushed_ids.get(reported_payment_id) ?? id) === id;
}

function hasBrought({ payment_status, amount }: ReportedPayment): boolean {
  return (payment_status === 'succeeded' || payment_status === 'refunded') && new Decimal(amount).gt(0);
}

/** Whether a push or charge at this provider has no stored id yet. A reported payment may then be the result of that push or charge. */
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

/**
 * Describes recorded payments that the provider now has with another amount, or no longer as paid. A person may have changed them there.
 */
function describeChanged(input: ReportInput): string[] {
  const { recorded, connection_id, pushed_ids, overpaid, reported, provider_type } = input;
  const received = recorded.filter(({ payment_status }) => RECEIVED.includes(payment_status));
  return received.flatMap(({ id, gateway_payment_id, currency, ...payment }) => {
    const pushed_id = pushed_ids.get(id);
    const id_there = pushed_id ?? (payment.connection_id === connection_id ? gateway_payment_id : null);
    if (!id_there) return [];
    const found = reported.payments.find(({ provider_payment_id }) => provider_payment_id === id_there);
    const there = new Decimal(found && hasBrought(found) ? found.amount : 0);
    const amount =
      pushed_id === undefined ? new Decimal(payment.amount) : computeSent(payment.amount, overpaid.get(id));
    // A pushed payment may be larger than the part that its invoice needed at the provider. This is no difference, unless the part is 0.
    const isPart = pushed_id !== undefined && there.gt(0) && there.lt(amount) && reported.invoice_status !== 'open';
    if (there.eq(amount) || isPart) return [];
    return [`payment ${id} of ${amount.toFixed()} ${currency} is ${there.toFixed()} at ${provider_type} (${id_there})`];
  });
}

function computeSent(amount: string, overpaid: Decimal = ZERO): Decimal {
  return new Decimal(amount).minus(overpaid);
}

/** Whether a payment is pending that may still bring money without another act of the customer, such as a bank debit. */
export function hasMoneyOnTheWay({ payments }: ReportedInvoice): boolean {
  return payments.some(
    ({ payment_status, is_for_customer = false }) => payment_status === 'pending' && !is_for_customer,
  );
}

/** Whether a charge is in progress, which pays the invoice at the provider before it is recorded here. */
export function isCharging(
  recorded: readonly Pick<Payment, 'payment_gateway' | 'payment_status'>[],
  provider_type: string,
): boolean {
  return recorded.some(
    ({ payment_gateway, payment_status }) =>
      payment_gateway === provider_type && (payment_status === 'PROCESSING' || payment_status === 'INITIATED'),
  );
}

/**
 * Describes an invoice that is open in this service but can no longer be paid at the provider; null if it can. Called after the report is
 * recorded.
 */
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

type RecordedRefund = Pick<PaymentRefund, 'id' | 'gateway_refund_id' | 'refund_status' | 'amount'>;
type UnrecordedRefund = { readonly amount: string; readonly provider_refund_id: string | null };
type RefundReport = Pick<ReportedPayment, 'refunded_amount' | 'refunds'>;

/**
 * Lists the refunds to record. A recorded refund is never recorded again, even if it has failed since and the report is older. Unrecorded
 * refunds are returned as one sum if the provider lists no refunds, or if a recorded refund contains several of the listed ones. A payment
 * that was not received has no refunds.
 */
export function listNewRefunds(
  payment: RecordedPayment,
  { refunded_amount, refunds }: RefundReport,
  recorded: readonly RecordedRefund[],
): UnrecordedRefund[] {
  if (!RECEIVED.includes(payment.payment_status)) return [];
  const contained = refunds === undefined ? new Decimal(payment.refunded_amount) : sumContained(recorded, refunds);
  const missing = Decimal.min(refunded_amount, payment.amount).minus(contained);
  if (missing.lte(0)) return [];
  if (refunds === undefined) return [{ amount: missing.toFixed(), provider_refund_id: null }];
  const added = refunds.filter(
    (refund) => refund.refund_status === 'succeeded' && !recorded.some((one) => isSameRefund(one, refund)),
  );
  if (sumAmounts(added).gt(missing)) return [{ amount: missing.toFixed(), provider_refund_id: null }];
  return added.map(({ amount, provider_refund_id }) => ({ amount, provider_refund_id }));
}

/**
 * Sums the recorded refunds that the report contains: those that succeeded, and those with another status here that the
 * report shows as succeeded. Other pending refunds may still fail, and the provider counts only successful ones.
 */
function sumContained(recorded: readonly RecordedRefund[], reported: readonly ReportedRefund[]): Decimal {
  const made = reported.filter(({ refund_status }) => refund_status === 'succeeded');
  return sumAmounts(
    recorded.filter((one) => one.refund_status === 'succeeded' || made.some((refund) => isSameRefund(one, refund))),
  );
}

/** Sums the refunds that succeeded: the amount that the customer got back. */
export function sumSucceeded(refunds: readonly ReportedRefund[]): string {
  return sumAmounts(refunds.filter(({ refund_status }) => refund_status === 'succeeded')).toFixed();
}

function sumAmounts(refunds: readonly { readonly amount: string }[]): Decimal {
  return sumDecimals(refunds.map(({ amount }) => new Decimal(amount)));
}

/** Whether the recorded and the reported refund are one. A refund that failed here and succeeded at the provider counts as two. */
function isSameRefund({ id, gateway_refund_id, refund_status }: RecordedRefund, reported: ReportedRefund): boolean {
  if (gateway_refund_id === reported.provider_refund_id) return true;
  return reported.refund_id === id && refund_status !== 'failed';
}

/** Finds the recorded refund that had succeeded and has failed at the provider since; undefined if there is none. */
export function findFailedRefund<Recorded extends RecordedRefund>(
  recorded: readonly Recorded[],
  { provider_refund_id, refund_id, refund_status }: ReportedRefund,
): Recorded | undefined {
  if (refund_status !== 'failed') return undefined;
  return recorded.find(
    (one) =>
      one.refund_status === 'succeeded' &&
      (one.gateway_refund_id === null ? one.id === refund_id : one.gateway_refund_id === provider_refund_id),
  );
}

/**
 * Computes how much of the refunds that were recorded as one sum may have failed: the amount that the provider reports neither as succeeded
 * nor as pending. It is 0 unless the report has a failed refund that is not recorded individually. A person decides whether the sum
 * contains that refund.
 */
export function computeFailedPart(recorded: readonly RecordedRefund[], reported: readonly ReportedRefund[]): Decimal {
  const isRecorded = (refund: ReportedRefund) =>
    recorded.some(({ id, gateway_refund_id }) =>
      gateway_refund_id === null ? id === refund.refund_id : gateway_refund_id === refund.provider_refund_id,
    );
  const unrecorded = reported.filter((refund) => !isRecorded(refund));
  if (!unrecorded.some(({ refund_status }) => refund_status === 'failed')) return new Decimal(0);
  const sums = recorded.filter(
    ({ id, gateway_refund_id, refund_status }) =>
      refund_status === 'succeeded' &&
      gateway_refund_id === null &&
      !reported.some(({ refund_id }) => refund_id === id),
  );
  const contained = unrecorded.filter(({ refund_status }) => refund_status !== 'failed');
  return Decimal.max(sumAmounts(sums).minus(sumAmounts(contained)), 0);
}

/** Whether periodic reading can stop: the invoice is paid or void at the provider. Later changes arrive by webhook. */
export function isReportFinal({ invoice_status }: ReportedInvoice): boolean {
  return invoice_status === 'paid' || invoice_status === 'void';
}
