/** Loads the taxes of an invoice for its document, such as "VAT 19%": added taxes and taxes included in the amounts. */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { DocumentTax } from '../../../core/invoicing/document/document.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';

export async function loadPrintedTaxes(invoice: InvoiceModel, database: Database): Promise<DocumentTax[]> {
  const applied = await TaxAppliedModel.in(invoice, database)
    .where({ entity_type: 'invoice', entity_id: invoice.id, status: 'published' })
    .orderBy('position');
  const byRate = groupBy(applied, ({ tax_rate_id }) => tax_rate_id);
  const rates = await TaxRateModel.byId(invoice, [...byRate.keys()], database);
  return Array.from(byRate, ([id, rows]) => {
    const { name, percentage_value, tax_behavior } = rates.get(id)!;
    const amount = sumDecimals(rows.map(({ tax_amount }) => new Decimal(tax_amount))).toFixed();
    const label = percentage_value === null ? name : `${name} ${percentage_value}%`;
    return { label, amount, is_included: tax_behavior === 'inclusive' };
  });
}
