/**
 * Loads the corrections that other invoices made to an invoice's usage, and the amount of that usage that later
 * invoices offset.
 */

import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { type CorrectedAmount, computeCorrections } from '../../../core/invoicing/credit-note/corrected-charges.ts';
import { computeDiscountedAmount } from '../../../core/rating/adjustment-fields.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { listNotedLines } from './noted-lines.ts';

export async function loadUsageCorrections(
  invoice: InvoiceModel,
  records: readonly InvoiceLineItemModel[],
  database: Database,
): Promise<Map<string, CorrectedAmount>> {
  const items = records.flatMap((line) => (line.price_type === 'USAGE' ? (line.subscription_line_item_id ?? []) : []));
  if (items.length === 0) return new Map();
  const lines = await openLines(invoice, [...new Set(items)], database);
  const noted = groupBy(
    await listNotedLines(
      invoice,
      lines.map(({ id }) => id),
      database,
    ),
    (line) => line.invoice_line_item_id,
  );
  return computeCorrections(
    lines.map((line) => {
      const notes = noted.get(line.id) ?? [];
      return {
        id: line.id,
        item_id: line.subscription_line_item_id ?? '',
        service: { start: toInstant(line.period_start ?? ''), end: toInstant(line.period_end ?? '') },
        charged: computeDiscountedAmount(line),
        tax: toLineTax(line),
        prepaid: new Decimal(line.prepaid_credits_applied),
        noted: sumDecimals(notes.map(({ amount }) => new Decimal(amount))),
        tax_noted: sumDecimals(notes.map(({ tax_amount }) => new Decimal(tax_amount))),
        prepaid_noted: sumDecimals(notes.map(({ prepaid_credits_returned }) => new Decimal(prepaid_credits_returned))),
      };
    }),
  );
}

/** All lines of these items on invoices that are not void. */
async function openLines(
  invoice: InvoiceModel,
  items: readonly string[],
  database: Database,
): Promise<InvoiceLineItemModel[]> {
  const lines = await InvoiceLineItemModel.in(invoice, database)
    .whereIn('subscription_line_item_id', [...items])
    .where({ price_type: 'USAGE', status: 'published' })
    .orderBy(['created_at', 'invoice_id', 'position', 'id']);
  const ids = lines.map(({ invoice_id }) => invoice_id);
  const invoices = await InvoiceModel.byId(invoice, ids, database);
  return lines.filter((line) => invoices.get(line.invoice_id)?.invoice_status !== 'VOIDED');
}

export function toLineTax(line: InvoiceLineItemModel): Decimal {
  return new Decimal(line.tax_amount);
}
