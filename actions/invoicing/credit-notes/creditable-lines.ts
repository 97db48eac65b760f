/**
 * Loads the lines of an invoice with the amounts credited so far: by final credit notes, by subscription changes, whose credits name the
 * credited line, and by corrections of usage (docs/rules/credit-notes.md, "No more than was charged").
 */

import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { CreditableLine } from '../../../core/invoicing/credit-note/creditable.ts';
import { computeDiscountedAmount, sumDiscounts } from '../../../core/rating/adjustment-fields.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { listLineCredits } from '../invoices/credits-of-lines.ts';
import { loadUsageCorrections, toLineTax } from './corrections-of-usage.ts';
import { listNotedLines } from './noted-lines.ts';

type CreditableInvoiceLine = CreditableLine & { readonly record: InvoiceLineItemModel };

export async function loadCreditableLines(invoice: InvoiceModel, database: Database): Promise<CreditableInvoiceLine[]> {
  const records = await InvoiceLineItemModel.in(invoice, database)
    .where({ invoice_id: invoice.id, status: 'published' })
    .orderBy(['position', 'id']);
  const ids = records.map(({ id }) => id);
  const noted = groupBy(await listNotedLines(invoice, ids, database), (line) => line.invoice_line_item_id);
  const credits = await listLineCredits(invoice, ids, database);
  const changed = groupBy(credits, (line) => line.parent_line_item_id ?? '');
  const corrected = await loadUsageCorrections(invoice, records, database);
  return records.map((record) => {
    const byCorrections = corrected.get(record.id);
    const byNotes = noted.get(record.id) ?? [];
    const byChanges = changed.get(record.id) ?? [];
    return {
      id: record.id,
      record,
      amount: new Decimal(record.amount),
      discount: sumDiscounts(record),
      tax: toLineTax(record),
      prepaid: new Decimal(record.prepaid_credits_applied),
      credited: sumDecimals([
        ...byNotes.map(({ amount }) => new Decimal(amount)),
        ...byChanges.map((line) => computeDiscountedAmount(line).negated()),
        byCorrections?.amount ?? ZERO,
      ]),
      tax_credited: sumDecimals([
        ...byNotes.map(({ tax_amount }) => new Decimal(tax_amount)),
        ...byChanges.map((line) => toLineTax(line).negated()),
        byCorrections?.tax ?? ZERO,
      ]),
      prepaid_credited: sumDecimals([
        ...byNotes.map(({ prepaid_credits_returned }) => new Decimal(prepaid_credits_returned)),
        ...byChanges.map((line) => new Decimal(line.prepaid_credits_applied).negated()),
        byCorrections?.prepaid ?? ZERO,
      ]),
    };
  });
}
