/** An invoice of QuickBooks as pulled, with the money that its payments apply to it. */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { ReportedCredit, ReportedPayment } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { isVoided, type QuickBooksInvoice, type QuickBooksPayment } from './records.ts';

export function toProviderInvoice(
  invoice: QuickBooksInvoice,
  payments: readonly QuickBooksPayment[],
  currency: string,
): ProviderInvoice {
  return {
    provider_entity_id: invoice.Id,
    url: null,
    invoice_status: toInvoiceStatus(invoice),
    total: toText(invoice.TotalAmt),
    currency,
    payments: payments.flatMap((payment) => toProviderPayment(payment, invoice.Id, currency)),
    credits: payments.flatMap((payment) => listCredits(payment, invoice.Id)),
  };
}

function toInvoiceStatus(invoice: QuickBooksInvoice): ProviderInvoice['invoice_status'] {
  if (isVoided(invoice)) return 'void';
  return new Decimal(invoice.Balance).isZero() ? 'paid' : 'open';
}

/**
 * Finds our id in the note of a pushed payment (sales.ts). The payment of an invoice that was marked as paid by hand
 * has the id of the invoice.
 */
const REPORTED = /\bFarthing payment ((?:pay|inv)_[0-9A-Z]{26})\b/;

function toProviderPayment(payment: QuickBooksPayment, invoice_id: string, currency: string): ReportedPayment[] {
  const amount = computeMoney(payment, invoice_id);
  if (amount.lte(0)) return [];
  const reported_payment_id = REPORTED.exec(payment.PrivateNote ?? '')?.[1] ?? null;
  return [
    {
      provider_payment_id: payment.Id,
      payment_status: 'succeeded',
      amount: amount.toFixed(),
      currency,
      paid_at: payment.TxnDate === undefined ? null : `${payment.TxnDate}T00:00:00.000Z`,
      refunded_amount: '0',
      provider_tax: null,
      reported_payment_id,
    },
  ];
}

/**
 * Computes the money that a payment applies to the invoice, without the credit memos that it applies. If a payment applies money and credit
 * memos to several invoices, the share of each is unknown, so a person has to record it.
 */
function computeMoney(payment: QuickBooksPayment, invoice_id: string): Decimal {
  const applied = sumLinked(payment, (type, id) => type === 'Invoice' && id === invoice_id);
  const credits = sumLinked(payment, (type) => type !== 'Invoice');
  if (credits.isZero() || applied.isZero()) return applied;
  const others = sumLinked(payment, (type, id) => type === 'Invoice' && id !== invoice_id);
  if (others.isZero()) return applied.minus(credits);
  if (new Decimal(payment.TotalAmt).isZero()) return new Decimal(0);
  throw new ProviderError(
    'person',
    `the payment ${payment.Id} at QuickBooks applies credits and money to several invoices: record it by hand`,
  );
}

/**
 * Lists the credits that a payment applies to the invoice, such as credit memos. If a payment of 0 applies credits to several invoices, their
 * share of each is unknown, so the applied amount is one credit with the id of the payment.
 */
function listCredits(payment: QuickBooksPayment, invoice_id: string): ReportedCredit[] {
  const applied = sumLinked(payment, (type, id) => type === 'Invoice' && id === invoice_id);
  const others = sumLinked(payment, (type, id) => type === 'Invoice' && id !== invoice_id);
  const credits = listLinked(payment, (type) => type !== 'Invoice');
  if (credits.length === 0 || applied.isZero()) return [];
  if (!others.isZero()) return [{ provider_credit_id: payment.Id, amount: applied.toFixed() }];
  return credits.map(({ Amount, LinkedTxn = [] }) => ({ provider_credit_id: LinkedTxn[0]!.TxnId, amount: Amount }));
}

function sumLinked(payment: QuickBooksPayment, isWanted: (type: string, id: string) => boolean): Decimal {
  return sumDecimals(listLinked(payment, isWanted).map(({ Amount }) => new Decimal(Amount)));
}

function listLinked({ Line = [] }: QuickBooksPayment, isWanted: (type: string, id: string) => boolean) {
  return Line.filter(({ LinkedTxn = [] }) => LinkedTxn.some(({ TxnType, TxnId }) => isWanted(TxnType, TxnId)));
}

function toText(amount: string): string {
  return new Decimal(amount).toFixed();
}
