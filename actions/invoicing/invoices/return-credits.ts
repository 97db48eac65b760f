/**
 * Returns prepaid credits when an invoice with credit lines becomes final (docs/rules/invoices.md, "What is given back"). The credits go to
 * the lots that had paid the credited charges. Credits that the invoice uses for its own charges are subtracted first.
 */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { returnPrepaid } from '../../credits/wallets/return-credits.ts';

type ReturnCreditsInput = { readonly line_items: readonly InvoiceLineItem[]; readonly author: Author };

/** Must be called once per invoice, in the transaction that makes it final. */
export async function returnCredits(
  transaction: Transaction,
  invoice: Invoice,
  { line_items, author }: ReturnCreditsInput,
): Promise<void> {
  const amount = new Decimal(invoice.total_prepaid_credits_applied).negated();
  if (amount.lte(0)) return;
  const charged = await listCharged(transaction, invoice, line_items);
  const { id, subscription_id } = invoice;
  const giving = {
    amount,
    transaction_reason: 'CREDIT_NOTE' as const,
    reference_type: 'INVOICE' as const,
    reference_id: id,
    idempotency_key: toOwnKey('returned', id),
    description: 'Prepaid credits of what was refunded',
    metadata: { subscription_id: subscription_id ?? '' },
    author,
  };
  await returnPrepaid(transaction, { invoice, charged }, giving);
}

/**
 * Lists final invoices whose charges were paid with prepaid credits and are credited by these lines. Invoices that the credit lines name
 * come first, then the newest.
 */
async function listCharged(
  database: Database,
  invoice: Invoice,
  line_items: readonly InvoiceLineItem[],
): Promise<InvoiceModel[]> {
  const giving = line_items.filter((line) => new Decimal(line.prepaid_credits_applied).isNegative());
  const named = new Set(giving.flatMap(({ parent_line_item_id }) => parent_line_item_id ?? []));
  const items = giving.flatMap(({ subscription_line_item_id }) => subscription_line_item_id ?? []);
  const lines = await InvoiceLineItemModel.in(invoice, database)
    .where((either) => {
      void either.whereIn('id', [...named]).orWhereIn('subscription_line_item_id', items);
    })
    .where({ status: 'published' })
    .where('prepaid_credits_applied', '>', 0)
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ]);
  const isNamed = ({ id }: InvoiceLineItemModel) => named.has(id);
  const ordered = [...lines.filter(isNamed), ...lines.filter((line) => !isNamed(line))];
  const ids = [...new Set(ordered.map(({ invoice_id }) => invoice_id))].filter((id) => id !== invoice.id);
  const invoices = await InvoiceModel.byId(invoice, ids, database);
  return ids.flatMap((id) => invoices.get(id) ?? []).filter(({ invoice_status }) => invoice_status === 'FINALIZED');
}
