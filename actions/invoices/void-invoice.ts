/** Voids an invoice: it keeps its number and its lines, and stops standing for its period (docs/rules/invoices.md, "Voiding"). */

import { checkVoidable } from '../../core/invoice/void.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import type { Stores } from '../../storage/stores.ts';
import { emit } from '../system-events/emit.ts';

export type Voiding = { id: string; metadata: Record<string, string> | null; author: Author };

export async function voidInvoice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, metadata, author }: Voiding,
): Promise<InvoiceModel> {
  return stores.postgres.transaction(async (transaction) => {
    const invoice = await InvoiceModel.fetch(scope, id, { database: transaction, lock: true });
    checkVoidable(invoice);
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
