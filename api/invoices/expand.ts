/** Invoices with the parts that are asked for: one query per part, however many invoices. */
import { byId } from '../../core/by-id.ts';
import type { Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Context } from '../http/route.ts';
import { showSubscriptions } from '../subscriptions/expand.ts';

/** What one invoice shows. */
export const EVERY_PART = ['customer', 'subscription'];

type Shown = { expand: readonly string[]; line_items: boolean };

/** A preview brings its lines along; those of stored invoices are read. */
export async function showInvoices(
  invoices: readonly (Invoice & { line_items?: InvoiceLineItem[] })[],
  { expand, line_items }: Shown,
  context: Context,
) {
  const asks = (part: string) => expand.some((path) => path === part || path.startsWith(`${part}.`));
  const lines = line_items
    ? await linesOf(
        invoices.filter((invoice) => !invoice.line_items),
        context,
      )
    : [];
  const customers = asks('customer') ? await customersOf(invoices, context) : new Map();
  const subscriptions = asks('subscription') ? await subscriptionsOf(invoices, expand, context) : new Map();
  return invoices.map((invoice) => ({
    ...invoice,
    line_items: line_items ? (invoice.line_items ?? lines.filter((line) => line.invoice_id === invoice.id)) : null,
    customer: customers.get(invoice.customer_id) ?? null,
    subscription: subscriptions.get(invoice.subscription_id ?? '') ?? null,
    coupon_applications: asks('coupon_applications') ? [] : null,
    taxes: asks('tax_applied') ? [] : null,
  }));
}

export async function showInvoice(invoice: Invoice & { line_items?: InvoiceLineItem[] }, context: Context) {
  const [shown] = await showInvoices([invoice], { expand: EVERY_PART, line_items: true }, context);
  return shown!;
}

/** As they are shown inside of other records. */
export async function showInvoicesById(invoices: ReadonlyMap<string, Invoice>, context: Context) {
  return byId(await showInvoices([...invoices.values()], { expand: [], line_items: true }, context));
}

async function linesOf(invoices: readonly Invoice[], { scope, services }: Context) {
  const ids = invoices.map(({ id }) => id);
  return InvoiceLineItemModel.in(scope, services.postgres)
    .where('status', 'published')
    .whereIn('invoice_id', ids)
    .orderBy('position');
}

export async function customersOf(records: readonly { readonly customer_id: string }[], { scope, services }: Context) {
  const ids = records.map(({ customer_id }) => customer_id);
  return CustomerModel.byId(scope, ids, services.postgres);
}

export async function subscriptionsOf(
  records: readonly { readonly subscription_id?: string | null | undefined }[],
  expand: readonly string[],
  context: Context,
) {
  const { scope, services } = context;
  const ids = records.map(({ subscription_id }) => subscription_id);
  const subscriptions = [...(await SubscriptionModel.byId(scope, ids, services.postgres)).values()];
  return byId(await showSubscriptions(subscriptions, expand.includes('subscription.plan') ? ['plan'] : [], context));
}
