/**
 * Records the payments and refunds that a provider reports for an invoice (docs/rules/payments.md, "Paid at a provider"). The lock of the
 * invoice serializes concurrent reports; a unique index refuses a second record of one payment.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { computeRefundablePayment } from '../../../core/invoicing/credit-note/creditable.ts';
import { planChanges } from '../../../core/payments/provider-changes.ts';
import {
  computeFailedPart,
  describeClosed,
  findFailedRefund,
  isCharging,
  listNewRefunds,
  planReport,
  type ReportedInvoice,
  type ReportedPayment,
} from '../../../core/payments/provider-payments.ts';
import { PAYMENT_GATEWAYS, type PaymentGateway } from '../../../core/payments/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { loadRefundLimit } from '../../credits/wallets/pending-credits.ts';
import { loadSentCredits, loadSentPayments } from '../../foundation/connections/sent-payments.ts';
import { emit } from '../../foundation/emit.ts';
import { loadCharges } from '../../invoicing/credit-notes/load-charges.ts';
import { type LockedInvoice, lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { lockReceivedPayment } from '../../payments/lock-payment.ts';
import { applySuccess } from './apply-outcome.ts';
import { listRefunds } from './book-refund.ts';
import { recordMadeRefund } from './refund-payment.ts';
import { reverseMadeRefund } from './reverse-refund.ts';

type InvoiceReport = {
  readonly connection: ConnectionModel;
  /** Whether refunds of these payments can be requested from the provider; otherwise they are only recorded. */
  readonly can_refund: boolean;
  readonly invoice_id: string;
  /** Total with which the invoice was sent; null if it was linked by hand. */
  readonly sent_total: string | null;
  readonly reported: ReportedInvoice;
  readonly now: Date;
};

type RecordedReport = {
  /** Differences that a person has to resolve. */
  readonly differences: readonly string[];
  readonly is_undecided: boolean;
  /** Whether a reported payment was not recorded, because it may belong to a charge by this service whose id is not stored yet. */
  readonly is_money_unrecorded: boolean;
};

export async function recordInvoiceReport(
  stores: Stores,
  transaction: Transaction,
  report: InvoiceReport,
): Promise<RecordedReport> {
  const { connection, invoice_id, reported } = report;
  const { invoice } = await lockInvoice(transaction, connection, invoice_id);
  const recorded = await listPayments(transaction, report);
  const payment_ids = recorded.map(({ id }) => id);
  const sent = await loadSentPayments(transaction, connection, { payment_ids });
  const own_ids = new Set([invoice_id, ...payment_ids]);
  const { id: connection_id, provider_type } = connection;
  const plan = planReport({ invoice, recorded, own_ids, ...sent, connection_id, provider_type, reported });
  for (const payment of plan.received) await recordPayment(stores, transaction, { ...report, payment });
  const unbooked: string[] = [];
  const payments = await listPayments(transaction, report);
  for (const one of reported.payments) {
    const payment = payments.find(({ gateway_payment_id }) => gateway_payment_id === one.provider_payment_id);
    if (!payment || payment.currency !== one.currency) continue;
    const refunds = { payment, reported: one, provider_type, key_prefix: connection.id, now: report.now };
    const difference = await applyReportedRefunds(stores, transaction, refunds);
    if (difference !== null) unbooked.push(difference);
  }
  const { invoice: current } = await lockInvoice(transaction, connection, invoice_id);
  const closed = plan.is_undecided ? null : describeClosed({ invoice: current, reported, provider_type });
  const credits = await loadSentCredits(transaction, connection, report);
  const changes = planChanges({ ...report, invoice: current, ...credits, provider_type });
  const isCharged = closed !== null && isCharging(recorded, provider_type);
  const is_undecided = plan.is_undecided || changes.is_undecided || isCharged;
  const still_open = closed === null || is_undecided ? [] : [closed];
  const differences = [...plan.differences, ...unbooked, ...still_open, ...changes.differences];
  return { differences, is_undecided, is_money_unrecorded: plan.is_undecided };
}

/** Lists all payments of the invoice, also archived ones, which the provider may still report. */
function listPayments(transaction: Transaction, { connection, invoice_id }: InvoiceReport): Promise<PaymentModel[]> {
  return PaymentModel.listBy(connection, { column: 'destination_id', value: invoice_id }, transaction);
}

/** Records a payment that the provider received. It is booked in full, even above the remaining amount. */
async function recordPayment(
  stores: Stores,
  transaction: Transaction,
  { connection, can_refund, invoice_id, payment, now }: InvoiceReport & { payment: ReportedPayment },
): Promise<void> {
  const current: LockedInvoice = await lockInvoice(transaction, connection, invoice_id);
  const { invoice } = current;
  const { provider_payment_id, provider_tax, is_outside = false } = payment;
  const author = { user_id: '', now };
  const record = {
    ...createdBy(author),
    id: newId('payment', now.getTime()),
    idempotency_key: `${connection.id}/${provider_payment_id}/${invoice_id}`,
    customer_id: invoice.customer_id,
    destination_type: 'INVOICE',
    destination_id: invoice_id,
    invoice_number: invoice.invoice_number ?? null,
    payment_method_type: 'OFFLINE',
    payment_gateway: can_refund && !is_outside ? toGateway(connection.provider_type) : null,
    connection_id: connection.id,
    gateway_payment_id: provider_payment_id,
    gateway_metadata: provider_tax === null ? null : { provider_tax },
    amount: payment.amount,
    currency: invoice.currency,
    payment_status: 'PENDING',
    track_attempts: false,
  };
  const conflict = `${provider_payment_id} of ${connection.provider_type} is recorded already`;
  const added = await PaymentModel.add(connection, record, { database: transaction, conflict });
  await emit(transaction, 'payment.created', { record: added, by: { now } });
  const paid_at = payment.paid_at ?? undefined;
  const success = { payment: added, gateway_payment_id: provider_payment_id, by: author, at: paid_at };
  await applySuccess(stores, transaction, { ...current, ...success });
}

function toGateway(provider_type: string): PaymentGateway | null {
  return PAYMENT_GATEWAYS.find((gateway) => gateway === provider_type) ?? null;
}

type ReportedRefunds = {
  readonly payment: PaymentModel;
  readonly reported: Pick<ReportedPayment, 'refunded_amount' | 'refunds'>;
  readonly provider_type: string;
  readonly key_prefix: string;
  readonly now: Date;
};

/**
 * Records the refunds that were made at the provider, and reverses those that have failed there after they were recorded as made.
 * `transaction` has locked the invoice. Returns the differences that a person has to resolve; null if there are none.
 */
export async function applyReportedRefunds(
  stores: Stores,
  transaction: Transaction,
  report: ReportedRefunds,
): Promise<string | null> {
  const failed = await reverseFailedRefunds(stores, transaction, report);
  const unfitting = await recordNewRefunds(transaction, report);
  return [...failed, ...unfitting].join('; ') || null;
}

/**
 * Reverses refunds that failed after they were recorded. A refund that was recorded only as a part of a sum cannot be
 * reversed, and is returned as a difference.
 */
async function reverseFailedRefunds(
  stores: Stores,
  transaction: Transaction,
  { payment: { id, destination_id: invoice_id, ...scope }, reported, provider_type, now }: ReportedRefunds,
): Promise<string[]> {
  const payment = await PaymentModel.fetch(scope, id, { database: transaction });
  const recorded = await listRefunds(payment, transaction);
  const { refunds = [] } = reported;
  for (const one of refunds) {
    const refund = findFailedRefund(recorded, one);
    if (refund === undefined) continue;
    const locked = await lockReceivedPayment(transaction, scope, { id, invoice_id });
    await reverseMadeRefund(stores, transaction, { ...locked, refund, error: one.error ?? 'no reason', by: { now } });
  }
  const part = computeFailedPart(recorded, refunds);
  if (part.isZero()) return [];
  return [
    `${part.toFixed()} ${payment.currency} that payment ${id} records as refunded may have failed at ${provider_type}: compare its refunds there`,
  ];
}

/** Returns the refunds that are not recorded, because a credit note or a void has given the money back already. */
async function recordNewRefunds(
  transaction: Transaction,
  { payment: { id, destination_id: invoice_id, ...scope }, reported, provider_type, key_prefix, now }: ReportedRefunds,
): Promise<string[]> {
  const current = await PaymentModel.fetch(scope, id, { database: transaction });
  const recorded = await listRefunds(current, transaction);
  const unfitting: string[] = [];
  for (const { amount, provider_refund_id } of listNewRefunds(current, reported, recorded)) {
    const locked = await lockReceivedPayment(transaction, scope, { id, invoice_id });
    const { payment, invoice } = locked;
    const left = computeRefundablePayment(payment, invoice, await loadCharges(invoice, transaction));
    const most = await loadRefundLimit(transaction, invoice);
    if (new Decimal(amount).gt(most === null ? left : Decimal.min(left, most))) {
      unfitting.push(
        `${amount} ${payment.currency} of payment ${id} was refunded at ${provider_type}, but is given back here already`,
      );
      continue;
    }
    const total = new Decimal(payment.refunded_amount).plus(amount).toFixed();
    await recordMadeRefund(transaction, {
      ...{ ...locked, amount, gateway_refund_id: provider_refund_id, by: { now } },
      reason: `refunded at ${provider_type}`,
      idempotency_key: `${key_prefix}/${id}/${provider_refund_id ?? total}`,
    });
  }
  return unfitting;
}
