/** Table `invoice_line_items`. */
import { groupBy } from '../../core/group-by.ts';
import { type Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';
import { together } from './side-by-side.ts';

export interface InvoiceLineItemModel extends InvoiceLineItem {}

export class InvoiceLineItemModel extends ScopedModel {
  static override tableName = 'invoice_line_items';
  static override recordName = 'invoice line item';
  /** They are made with their invoice, whose totals tell of them. */
  static override isAudited = false;
  static override record = InvoiceLineItem;
  /** Its place among the lines of its invoice, from 0. */
  /** Null where a version before this one wrote it. */
  declare position: number | null;
}

/** What says of which invoice a line is. */
export type LineOnInvoice = {
  readonly line: InvoiceLineItemModel;
  readonly invoice: Pick<Invoice, 'invoice_status' | 'billing_reason'>;
};

type Joined = InvoiceLineItemModel & LineOnInvoice['invoice'] & { of_subscription_id: string };

/** Every line of the items of a subscription on an invoice that is not void, oldest first, on whosever invoice it stands. */
export function linesOnInvoices(scope: Scope, subscription_id: string, database: Database): Promise<LineOnInvoice[]> {
  const { tenant_id, environment_id } = scope;
  const key = `lines on invoices ${tenant_id} ${environment_id}`;
  return together(database, { key, asked: subscription_id }, async (subscription_ids) => {
    const lines = await InvoiceLineItemModel.in(scope, database)
      .join('subscription_line_items as item', 'item.id', 'invoice_line_items.subscription_line_item_id')
      .join('invoices as invoice', 'invoice.id', 'invoice_line_items.invoice_id')
      .where({ 'item.tenant_id': tenant_id, 'item.environment_id': environment_id })
      .where({ 'invoice.tenant_id': tenant_id, 'invoice.environment_id': environment_id })
      .whereIn('item.subscription_id', [...subscription_ids])
      .where({ 'invoice_line_items.status': 'published', 'invoice.status': 'published' })
      .whereNot('invoice.invoice_status', 'VOIDED')
      .orderBy(['created_at', 'invoice_id', 'position', 'id'].map((column) => `invoice_line_items.${column}`))
      .select('invoice_line_items.*', 'invoice.invoice_status', 'invoice.billing_reason')
      .select('item.subscription_id as of_subscription_id');
    const bySubscription = groupBy(lines as Joined[], ({ of_subscription_id }) => of_subscription_id);
    return subscription_ids.map((id) =>
      (bySubscription.get(id) ?? []).map((line) => {
        const { invoice_status, billing_reason } = line;
        return { line, invoice: { invoice_status, billing_reason } };
      }),
    );
  });
}

/** Of an invoice that is computed anew: they are made again with it, and told with it. */
export async function takeLinesAway(scope: Scope, invoice_id: string, transaction: Database): Promise<void> {
  const { tenant_id, environment_id } = scope;
  const key = `take lines away ${tenant_id} ${environment_id}`;
  await together(transaction, { key, asked: invoice_id }, async (invoice_ids) => {
    await InvoiceLineItemModel.in(scope, transaction)
      .whereIn('invoice_id', [...invoice_ids])
      .delete();
    return invoice_ids;
  });
}
