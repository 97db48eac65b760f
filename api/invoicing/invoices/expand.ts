/** Loads the requested parts of invoices with one query per part, regardless of the number of invoices. */

import type { CouponApplication } from '../../../core/catalog/coupon/application.ts';
import type { TaxApplied } from '../../../core/catalog/tax/applied.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { CouponApplicationModel } from '../../../storage/models/invoicing/coupon-application.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { loadLines } from '../../../storage/models/invoicing/load-lines.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadCustomersById } from '../../catalog/customers/expand.ts';
import type { Context } from '../../http/route.ts';
import { showSubscriptions } from '../../subscriptions/expand.ts';

/** Parts that the answer of a single invoice contains. */
export const EVERY_PART = ['customer', 'subscription', 'coupon_applications', 'tax_applied'];

type InvoiceView = { expand: readonly string[]; line_items: boolean };

/** Parts that a preview supplies; the parts of stored invoices are loaded. */
type PreviewedInvoiceParts = {
  subscription?: SubscriptionModel;
  line_items?: InvoiceLineItem[];
  coupon_applications?: CouponApplication[];
  taxes?: TaxApplied[];
};

export async function showInvoices(
  invoices: readonly (Invoice & PreviewedInvoiceParts)[],
  { expand, line_items }: InvoiceView,
  context: Context,
) {
  const asks = (part: string) => expand.some((path) => path === part || path.startsWith(`${part}.`));
  // An invoice may have many lines, so they are read by themselves (storage/models/invoicing/load-lines.ts).
  const lines = line_items ? await loadStoredLines(invoices, context) : new Map<string, InvoiceLineItem[]>();
  const customers = asks('customer') ? await loadCustomersById(invoices, context) : null;
  const subscriptions = asks('subscription') ? await showSubscriptionsById(invoices, expand, context) : null;
  const applications = asks('coupon_applications') ? await loadCouponApplications(invoices, context) : null;
  const taxes = asks('tax_applied') ? await loadAppliedTaxes(invoices, context) : null;
  return invoices.map((invoice) => ({
    ...invoice,
    line_items: line_items ? (invoice.line_items ?? lines.get(invoice.id) ?? []) : null,
    customer: customers?.get(invoice.customer_id) ?? null,
    subscription: subscriptions?.get(invoice.subscription_id ?? '') ?? null,
    coupon_applications: applications && (applications.get(invoice.id) ?? []),
    taxes: taxes && (taxes.get(invoice.id) ?? []),
  }));
}

export async function showInvoice(invoice: Invoice & PreviewedInvoiceParts, context: Context) {
  const [shown] = await showInvoices([invoice], { expand: EVERY_PART, line_items: true }, context);
  return shown!;
}

/** Invoices as they appear inside other records. */
export async function showInvoicesById(invoices: ReadonlyMap<string, Invoice>, context: Context) {
  return indexById(await showInvoices([...invoices.values()], { expand: [], line_items: true }, context));
}

type InvoicesWithParts = readonly (Invoice & PreviewedInvoiceParts)[];

/** Loads coupon applications by invoice, in the order of application. */
async function loadCouponApplications(invoices: InvoicesWithParts, { scope, services }: Context) {
  const brought = invoices.flatMap((invoice) => invoice.coupon_applications ?? []);
  const stored = invoices.filter((invoice) => !invoice.coupon_applications).map(({ id }) => id);
  const read = CouponApplicationModel.in(scope, services.postgres).where('status', 'published');
  const found = stored.length === 0 ? [] : await read.whereIn('invoice_id', stored).orderBy('position');
  return groupBy<CouponApplication, string>([...brought, ...found], ({ invoice_id }) => invoice_id);
}

/** Loads taxes by invoice, each with its rate. */
async function loadAppliedTaxes(invoices: InvoicesWithParts, { scope, services }: Context) {
  const brought = invoices.flatMap((invoice) => invoice.taxes ?? []);
  const stored = invoices.filter((invoice) => !invoice.taxes).map(({ id }) => id);
  const read = TaxAppliedModel.in(scope, services.postgres).where({ status: 'published', entity_type: 'invoice' });
  const found = stored.length === 0 ? [] : await read.whereIn('entity_id', stored).orderBy('position');
  const taxes: TaxApplied[] = [...brought, ...found];
  const ids = taxes.map(({ tax_rate_id }) => tax_rate_id);
  const rates = await TaxRateModel.byId(scope, ids, services.postgres);
  const shown = taxes.map((tax) => ({ ...tax, tax_rate: rates.get(tax.tax_rate_id) ?? null }));
  return groupBy(shown, ({ entity_id }) => entity_id);
}

async function loadStoredLines(invoices: InvoicesWithParts, { scope, services }: Context) {
  const ids = invoices.filter((invoice) => !invoice.line_items).map(({ id }) => id);
  if (ids.length === 0) return new Map<string, InvoiceLineItem[]>();
  return loadLines(scope, { model: InvoiceLineItemModel, parent: 'invoice_id', ids }, services.postgres);
}

type SubscriptionReference = {
  readonly subscription_id?: string | null | undefined;
  /** The subscription, if it was read before. */
  readonly subscription?: SubscriptionModel;
};

export async function showSubscriptionsById(
  records: readonly SubscriptionReference[],
  expand: readonly string[],
  context: Context,
) {
  const { scope, services } = context;
  const known = records.flatMap(({ subscription }) => subscription ?? []);
  const ids = records.flatMap(({ subscription, subscription_id }) => (subscription ? [] : subscription_id));
  const subscriptions = [...known, ...(await SubscriptionModel.byId(scope, ids, services.postgres)).values()];
  return indexById(
    await showSubscriptions(subscriptions, expand.includes('subscription.plan') ? ['plan'] : [], context),
  );
}
