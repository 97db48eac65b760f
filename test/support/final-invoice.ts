/** Builds the request for a manual invoice that is final at once. */
import { type CreateInvoice, createInvoiceShape } from '../../core/invoicing/invoice/record.ts';

export function finalInvoice(asked: { customer_id: string; amount: string; idempotency_key: string }): CreateInvoice {
  const { amount, ...named } = asked;
  const amounts = { amount_due: amount, total: amount, subtotal: amount };
  return createInvoiceShape.parse({ ...named, ...amounts, currency: 'usd', invoice_status: 'FINALIZED' });
}
