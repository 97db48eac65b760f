/**
 * Lists and searches of invoices. Skipped invoices are omitted unless the status filter names SKIPPED (docs/rules/invoices.md, "Nothing to
 * pay").
 */
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { InvoiceModel, narrowByOverdue, narrowByPayment } from '../../../storage/models/invoicing/invoice.ts';
import { fetchPage } from '../../http/list.ts';
import type { Context } from '../../http/route.ts';
import { showInvoices } from './expand.ts';
import { type InvoiceFilter, invoiceGrammar } from './schema.ts';

export async function findInvoices(input: InvoiceFilter, context: Context) {
  const { scope, services } = context;
  const invoices = InvoiceModel.in(scope, services.postgres);
  if (input.payment_status?.length) narrowByPayment(invoices, input.payment_status, context.now);
  if (input.overdue !== undefined) narrowByOverdue(invoices, input.overdue, context.now);
  const query = narrow(invoices, [
    ['id', input.invoice_ids],
    ['invoice_status', input.invoice_status],
    ['invoice_status', '<>', input.invoice_status?.length ? undefined : 'SKIPPED'],
    ['invoice_type', input.invoice_type],
    ['billing_reason', input.billing_reason],
    ['currency', input.currency?.toLowerCase()],
    ['customer_id', input.customer_id],
    ['customer_id', 'in', await CustomerModel.idsCalled(scope, input.external_customer_id, services.postgres)],
    ['subscription_customer_id', input.subscription_customer_id],
    ['subscription_id', input.subscription_id],
    ['amount_due', '>', input.amount_due_gt],
    ['amount_remaining', '>', input.amount_remaining_gt],
    ['period_start', '>=', input.period_start_gte],
    ['period_start', '<=', input.period_start_lte],
    ['period_end', '>=', input.period_end_gte],
    ['period_end', '<=', input.period_end_lte],
  ]);
  const { items, pagination } = await fetchPage(query, input, invoiceGrammar);
  const shown = { expand: input.expand ?? [], line_items: !input.skip_line_items };
  return { items: await showInvoices(items, shown, context), pagination };
}
