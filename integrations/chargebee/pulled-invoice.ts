/** An invoice of Chargebee as pulled, with its payments, refunds and credits (apidocs.chargebee.com, "Invoices"). */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { type ReportedCredit, type ReportedPayment, sumSucceeded } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { fromCents, toInteger } from './amounts.ts';
import type { ChargebeeClient } from './client.ts';
import { readCreditNoteId } from './credit-notes.ts';
import { isOutside, type LinkedRefund, listCreditNotes, listRefunds, loadPayments, toState } from './invoice-money.ts';
import { findPaidPage, isCustomerPayment, listPages, type OpenedPage } from './pages.ts';
import type { ChargebeeCreditNote, ChargebeeInvoice, ChargebeeTransaction } from './records.ts';

const INVOICE_STATUSES: Readonly<Record<string, ProviderInvoice['invoice_status']>> = {
  pending: 'draft',
  posted: 'open',
  payment_due: 'open',
  not_paid: 'open',
  paid: 'paid',
  voided: 'void',
};

export async function readInvoice(client: ChargebeeClient, id: string): Promise<ProviderInvoice | null> {
  const invoice = await client.read('invoice', id);
  if (invoice === null || invoice.deleted === true) return null;
  const { adjustment_credit_notes = [], issued_credit_notes = [] } = invoice;
  const payments = await loadPayments(client, invoice);
  const notes =
    adjustment_credit_notes.length + issued_credit_notes.length > 0 ? await listCreditNotes(client, id) : [];
  const refunds = await listRefunds(client, notes);
  const pages = payments.some(isCustomerPayment) ? await listPages(client, id) : [];
  return {
    provider_entity_id: id,
    url: null,
    invoice_status: toInvoiceStatus(invoice),
    total: fromCents(invoice.total, invoice.currency_code),
    currency: invoice.currency_code.toLowerCase(),
    payments: payments.flatMap((payment) => toReportedPayment(payment, { invoice, refunds, pages })),
    credits: [...listNoteCredits(notes, refunds), ...listAppliedCredits(invoice)],
  };
}

/** Chargebee calls an invoice paid whose rest was written off. */
function toInvoiceStatus({ id, status, write_off_amount }: ChargebeeInvoice): ProviderInvoice['invoice_status'] {
  const known = Object.hasOwn(INVOICE_STATUSES, status) ? INVOICE_STATUSES[status] : undefined;
  if (known === undefined) throw new ProviderError('person', `the invoice ${id} has the status ${status} at Chargebee`);
  return known === 'paid' && toInteger(write_off_amount) > 0 ? 'uncollectible' : known;
}

/** Finds our id in the reference of a recorded payment. An invoice that was marked as paid by hand has its own id there. */
const REPORTED = /^((?:pay|inv)_[0-9A-Z]{26})\b/;

type ReadMoney = {
  readonly invoice: ChargebeeInvoice;
  readonly refunds: readonly LinkedRefund[];
  readonly pages: readonly OpenedPage[];
};

function toReportedPayment(payment: ChargebeeTransaction, { invoice, refunds, pages }: ReadMoney): ReportedPayment[] {
  const link = invoice.linked_payments?.find(({ txn_id }) => txn_id === payment.id);
  if (payment.type !== 'payment' || payment.deleted === true || link === undefined) return [];
  const payment_status = toState(payment);
  const own = refunds.filter(({ payment_id }) => payment_id === payment.id).map(({ refund }) => refund);
  // A failed payment is applied to nothing.
  const cents = payment_status === 'succeeded' ? link.applied_amount : payment.amount;
  return [
    {
      provider_payment_id: payment.id,
      payment_status,
      amount: fromCents(cents, invoice.currency_code),
      currency: payment.currency_code.toLowerCase(),
      paid_at: payment_status === 'succeeded' ? toInstant(payment.date) : null,
      refunded_amount: sumSucceeded(own),
      refunds: own,
      provider_tax: null,
      reported_payment_id:
        REPORTED.exec(payment.reference_number ?? '')?.[1] ?? findPaidPage(payment, pages)?.payment_id ?? null,
      is_outside: isOutside(payment),
    },
  ];
}

/** Lists the amounts of credit notes without the money that Chargebee refunded, which is read with its payment. */
function listNoteCredits(notes: readonly ChargebeeCreditNote[], refunds: readonly LinkedRefund[]): ReportedCredit[] {
  return notes
    .filter(({ status }) => status !== 'voided')
    .map((note) => {
      const made = refunds.filter(
        ({ credit_note_id, refund }) => credit_note_id === note.id && refund.refund_status !== 'failed',
      );
      const refunded = sumDecimals(made.map(({ refund }) => new Decimal(refund.amount)));
      return {
        provider_credit_id: note.id,
        amount: new Decimal(fromCents(note.total, note.currency_code)).minus(refunded).toFixed(),
        reported_credit_note_id: readCreditNoteId(note),
      };
    })
    .filter(({ amount }) => new Decimal(amount).gt(0));
}

function listAppliedCredits({ applied_credits = [], currency_code }: ChargebeeInvoice): ReportedCredit[] {
  return applied_credits.map(({ cn_id, applied_amount }) => ({
    provider_credit_id: cn_id,
    amount: fromCents(applied_amount, currency_code),
  }));
}

function toInstant(seconds: string | undefined): string | null {
  return seconds === undefined ? null : new Date(Number(seconds) * 1_000).toISOString();
}
