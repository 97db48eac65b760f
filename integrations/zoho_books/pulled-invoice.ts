/** An invoice of Zoho Books as pulled, with the payments and credits that are applied to it. */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import type { ReportedPayment } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import { type InvoiceCredit, type InvoicePayment, toInvoiceStatus, type ZohoInvoice } from './records.ts';

/**
 * Finds our id in the reference number of a pushed payment (sales.ts). The payment of an invoice that was marked as paid
 * by hand has the id of the invoice.
 */
const REPORTED = /^(?:pay|inv)_[0-9A-Z]{26}$/;

type AppliedMoney = { readonly payments: readonly InvoicePayment[]; readonly credits: readonly InvoiceCredit[] };

export function toProviderInvoice(invoice: ZohoInvoice, { payments, credits }: AppliedMoney): ProviderInvoice {
  const currency = invoice.currency_code.toLowerCase();
  return {
    provider_entity_id: invoice.invoice_id,
    url: toInvoiceUrl(invoice),
    invoice_status: toInvoiceStatus(invoice),
    total: new Decimal(invoice.total).toFixed(),
    currency,
    payments: [...groupBy(payments, ({ payment_id }) => payment_id)].map(([id, parts]) =>
      toReportedPayment(id, parts, currency),
    ),
    credits: [...groupBy(credits, ({ creditnote_id }) => creditnote_id)].map(([provider_credit_id, parts]) => ({
      provider_credit_id,
      amount: sumAmounts(parts.map(({ amount_applied }) => amount_applied)),
    })),
  };
}

export function toInvoiceUrl({ invoice_url }: Pick<ZohoInvoice, 'invoice_url'>): string | null {
  return invoice_url?.startsWith('https://') ? invoice_url : null;
}

/** A payment that was applied to the invoice in several steps is several entries of the list. */
function toReportedPayment(
  id: string,
  parts: readonly [InvoicePayment, ...InvoicePayment[]],
  currency: string,
): ReportedPayment {
  const [{ date, reference_number = '' }] = parts;
  return {
    provider_payment_id: id,
    payment_status: 'succeeded',
    amount: sumAmounts(parts.map(({ amount }) => amount)),
    currency,
    paid_at: date ? `${date}T00:00:00.000Z` : null,
    refunded_amount: '0',
    provider_tax: null,
    reported_payment_id: REPORTED.test(reference_number) ? reference_number : null,
  };
}

function sumAmounts(amounts: readonly string[]): string {
  return sumDecimals(amounts.map((amount) => new Decimal(amount))).toFixed();
}
