/** Lists and searches of invoices. "SKIPPED: hidden from search results" unless asked for by status (specification). */
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { fetchPage } from '../list.ts';
import type { Context } from '../route.ts';
import { byList, customersCalled } from '../subscriptions/find.ts';
import { showInvoices } from './expand.ts';
import { type InvoiceFilter, invoiceGrammar } from './schema.ts';

export async function findInvoices(input: InvoiceFilter, context: Context) {
  const query = InvoiceModel.in(context.scope, context.services.postgres);
  byList(query, {
    id: input.invoice_ids,
    subscription_customer_id: input.subscription_customer_id,
    invoice_status: input.invoice_status,
    payment_status: input.payment_status,
  });
  if (!input.invoice_status?.length) query.whereNot('invoice_status', 'SKIPPED');
  if (input.external_customer_id)
    query.whereIn('customer_id', await customersCalled(input.external_customer_id, context));
  for (const [column, value] of Object.entries(equals(input))) if (value) query.where(column, value);
  for (const [column, operator, value] of bounds(input)) if (value !== undefined) query.where(column, operator, value);
  const { items, pagination } = await fetchPage(query, input, invoiceGrammar);
  const shown = { expand: input.expand ?? [], line_items: !input.skip_line_items };
  return { items: await showInvoices(items, shown, context), pagination };
}

function equals(input: InvoiceFilter) {
  const { customer_id, subscription_id, invoice_type, billing_reason } = input;
  return { customer_id, subscription_id, invoice_type, billing_reason, currency: input.currency?.toLowerCase() };
}

function bounds(input: InvoiceFilter): [string, string, string | undefined][] {
  return [
    ['amount_due', '>', input.amount_due_gt],
    ['amount_remaining', '>', input.amount_remaining_gt],
    ['period_start', '>=', input.period_start_gte],
    ['period_start', '<=', input.period_start_lte],
    ['period_end', '>=', input.period_end_gte],
    ['period_end', '<=', input.period_end_lte],
  ];
}
