/**
 * Records the payments and refunds that a provider reports for an invoice (docs/rules/payments.md, "Paid at a provider"). The lock of the
 * invoice serializes concurrent reports; a unique index refuses a second record of one payment.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { computeRefundablePayment } from '../../../core/invoicing/credit-note/creditable.ts';
import {
  describeClosed,
  isCharging,
  listReportedRefunds,
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
import { loadSentPayments } from '../../foundation/connections/sent-payments.ts';
import { emit } from '../../foundation/emit.ts';
import { loadCharges } from '../../invoicing/credit-notes/load-charges.ts';
import { type LockedInvoice, lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { applySuccess } from './apply-outcome.ts';
import { loadRecordedRefunds, recordMadeRefund } from './refund-payment.ts';

type InvoiceReport = {
  readonly connection: ConnectionModel;
  /** Whether refunds of these payments are requested from the provider; else they are records only. */
  readonly can_refund: boolean;
  readonly invoice_id: string;
  readonly reported: ReportedInvoice;
  readonly now: Date;
};

type RecordedReport = {
  /** Differences that a person has to resolve. */
  readonly differences: readonly string[];
  readonly is_undecided: boolean;
};

export async function recordInvoiceReport(
  stores: Stores,
  transaction: Transaction,
  report: InvoiceReport,
): Promise<RecordedReport> {
  const { connection, invoice_id, reported } = report;
  const { invoice } = await lockInvoice(transaction, connection, invoice_id);
  const recorded = await listPayments(transaction, report);
  const sent = await loadSentPayments(transaction, connection, { payment_ids: recorded.map(({ id }) => id) });
  const { id: connection_id, provider_type } = connection;
  const plan = planReport({ invoice, recorded, ...sent, connection_id, provider_type, reported });
  for (const payment of plan.received) await recordPayment(stores, transaction, { ...report, payment });
  const unbooked: string[] = [];
  let waitsForRefund = false;
  for (const { payment, amount } of listReportedRefunds(await listRefundedPayments(transaction, report), reported)) {
    if (payment.recorded_refunds.is_pending) {
      waitsForRefund = true;
      continue;
    }
    const difference = await recordReportedRefund(transaction, {
      ...{ payment, amount, provider_type, key_prefix: connection.id, now: report.now },
      made: payment.recorded_refunds.made,
    });
    if (difference !== null) unbooked.push(difference);
  }
  const { invoice: current } = await lockInvoice(transaction, connection, invoice_id);
  const closed = plan.is_undecided ? null : describeClosed({ invoice: current, reported, provider_type });
  const isCharged = closed !== null && isCharging(recorded, provider_type);
  const is_undecided = plan.is_undecided || waitsForRefund || isCharged;
  const still_open = closed === null || isCharged ? [] : [closed];
  return { differences: [...plan.differences, ...unbooked, ...still_open], is_undecided };
}

function listPayments(transaction: Transaction, { connection, invoice_id }: InvoiceReport): Promise<PaymentModel[]> {
  const where = { status: 'published' };
  return PaymentModel.listBy(connection, { column: 'destination_id', value: invoice_id, where }, transaction);
}

async function listRefundedPayments(transaction: Transaction, report: InvoiceReport) {
  const payments = await listPayments(transaction, report);
  const refunds = await Promise.all(payments.map((payment) => loadRecordedRefunds(payment, transaction)));
  return payments.map((payment, index) => Object.assign(payment, { recorded_refunds: refunds[index]! }));
}

/** The money was received elsewhere, so it is booked in full, also above the remaining amount. */
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

type ReportedRefundInput = {
  readonly payment: PaymentModel;
  readonly amount: Decimal;
  /** Refunds that have succeeded before. Their sum only grows, so it is part of the key. */
  readonly made: Decimal;
  readonly provider_type: string;
  readonly key_prefix: string;
  readonly now: Date;
};

/** Null if the refund is recorded, else the reason for which it is not: a credit note or a void has given the money back already. */
export async function recordReportedRefund(
  transaction: Transaction,
  { payment, amount, made, provider_type, key_prefix, now }: ReportedRefundInput,
): Promise<string | null> {
  const { invoice, subscription } = await lockInvoice(transaction, payment, payment.destination_id);
  const left = computeRefundablePayment(payment, invoice, await loadCharges(invoice, transaction));
  const most = await loadRefundLimit(transaction, invoice);
  if (amount.gt(most === null ? left : Decimal.min(left, most)))
    return `${amount.toFixed()} ${payment.currency} of payment ${payment.id} was refunded at ${provider_type}, but is given back here already`;
  await recordMadeRefund(transaction, {
    ...{ payment, invoice, subscription, amount: amount.toFixed(), by: { now } },
    reason: `refunded at ${provider_type}`,
    idempotency_key: `${key_prefix}/${payment.id}/${made.plus(amount).toFixed()}`,
  });
  return null;
}
