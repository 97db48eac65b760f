/** An invoice of Xero as pulled, with the money and credits that are applied to it. */
import { Decimal } from '../../core/foundation/decimal.ts';
import type { ReportedPayment } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { type DocumentStatus, type NestedPayment, parseDay, type XeroInvoice } from './records.ts';

const INVOICE_STATUSES: Readonly<Record<DocumentStatus, ProviderInvoice['invoice_status']>> = {
  DRAFT: 'draft',
  SUBMITTED: 'draft',
  AUTHORISED: 'open',
  PAID: 'paid',
  VOIDED: 'void',
  DELETED: 'void',
};

export function toProviderInvoice(invoice: XeroInvoice): ProviderInvoice {
  const { InvoiceID, Status, Total, CurrencyCode, CreditNotes = [] } = invoice;
  return {
    provider_entity_id: InvoiceID,
    url: null,
    invoice_status: INVOICE_STATUSES[Status],
    total: new Decimal(Total).toFixed(),
    currency: CurrencyCode.toLowerCase(),
    payments: listPayments(invoice),
    credits: CreditNotes.flatMap(({ CreditNoteID, AppliedAmount = '0' }) =>
      new Decimal(AppliedAmount).isZero()
        ? []
        : [{ provider_credit_id: CreditNoteID, amount: new Decimal(AppliedAmount).toFixed() }],
    ),
  };
}

/** Money that was received before, as a prepayment or an overpayment, pays an invoice with the part that is applied to it. */
function listPayments({ CurrencyCode, Payments = [], Prepayments = [], Overpayments = [] }: XeroInvoice) {
  const received = [
    ...Payments.filter(({ Status }) => Status !== 'DELETED'),
    ...Prepayments.map(({ PrepaymentID, AppliedAmount, Date }) => toPayment(PrepaymentID, AppliedAmount, Date)),
    ...Overpayments.map(({ OverpaymentID, AppliedAmount, Date }) => toPayment(OverpaymentID, AppliedAmount, Date)),
  ];
  const currency = CurrencyCode.toLowerCase();
  return received
    .filter(({ Amount }) => !new Decimal(Amount).isZero())
    .map((payment) => toReportedPayment(payment, currency));
}

function toPayment(PaymentID: string, Amount = '0', Date?: string): NestedPayment {
  return { PaymentID, Amount, ...(Date === undefined ? {} : { Date }) };
}

/**
 * Finds our id in the reference of a pushed payment (documents.ts). The payment of an invoice that was marked as paid by
 * hand has the id of the invoice.
 */
const REPORTED = /\bFarthing payment ((?:pay|inv)_[0-9A-Z]{26})\b/;

function toReportedPayment({ PaymentID, Amount, Date, Reference }: NestedPayment, currency: string): ReportedPayment {
  const day = parseDay(Date);
  return {
    provider_payment_id: PaymentID,
    payment_status: 'succeeded',
    amount: new Decimal(Amount).toFixed(),
    currency,
    paid_at: day === undefined ? null : `${day}T00:00:00.000Z`,
    refunded_amount: '0',
    provider_tax: null,
    reported_payment_id: REPORTED.exec(Reference ?? '')?.[1] ?? null,
  };
}
