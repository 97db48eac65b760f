/** Voids an invoice: it keeps its number and its lines, and stops standing for its period (docs/rules/invoices.md, "Voiding"). */

import { notAllowed } from '../../core/error.ts';
import { checkVoidable } from '../../core/invoice/void.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';

export type Voiding = { id: string; metadata: Record<string, string> | null; author: Author };

export async function voidInvoice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, metadata, author }: Voiding,
): Promise<InvoiceModel> {
  return stores.postgres.transaction(async (transaction) => {
    const { subscription_id } = await InvoiceModel.fetch(scope, id, { database: transaction });
    // The subscription first, as every writer of its invoices does: a change reads what was billed under its lock.
    if (subscription_id) await SubscriptionModel.fetch(scope, subscription_id, { database: transaction, lock: true });
    const invoice = await InvoiceModel.fetch(scope, id, { database: transaction, lock: true });
    checkVoidable(invoice);
    await checkNothingCredited(invoice, transaction);
    const changes = {
      invoice_status: 'VOIDED' as const,
      voided_at: author.now.toISOString(),
      ...(metadata ? { metadata: { ...invoice.metadata, ...metadata } } : {}),
    };
    const voided = await InvoiceModel.change(invoice, changes, { by: author, database: transaction });
    await emit(transaction, 'invoice.update.voided', { record: voided, by: author });
    return voided;
  });
}

/** What a change gave back has lowered what it charged, or is in a wallet: without this invoice it would be lost, or be there twice. */
async function checkNothingCredited(invoice: InvoiceModel, transaction: Transaction): Promise<void> {
  const [credit] = await InvoiceLineItemModel.in(invoice, transaction)
    .where({ invoice_id: invoice.id, price_type: 'FIXED' })
    .whereNotNull('subscription_line_item_id')
    .where('amount', '<', 0)
    .limit(1);
  if (credit) throw notAllowed('an invoice that credits unused time cannot be voided: change the subscription back');
  const elsewhere = await creditOf(invoice, transaction);
  if (elsewhere)
    throw notAllowed('unused time of this invoice was credited already: it cannot be voided', {
      invoice_id: elsewhere.invoice_id,
    });
}

/** The line of another invoice that gives back what stands on this one. */
async function creditOf(invoice: InvoiceModel, transaction: Transaction): Promise<InvoiceLineItemModel | undefined> {
  const lines = await InvoiceLineItemModel.in(invoice, transaction).where({ invoice_id: invoice.id }).select('id');
  const ids = lines.map(({ id }) => id);
  const credits = await InvoiceLineItemModel.in(invoice, transaction)
    .where({ subscription_id: invoice.subscription_id ?? '', price_type: 'FIXED' })
    .whereIn('parent_line_item_id', ids)
    .where('amount', '<', 0);
  const others = await InvoiceModel.byId(
    invoice,
    credits.map(({ invoice_id }) => invoice_id),
    transaction,
  );
  return credits.find(({ invoice_id }) => others.get(invoice_id)?.invoice_status !== 'VOIDED');
}
