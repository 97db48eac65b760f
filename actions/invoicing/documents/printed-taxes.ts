/** Loads the taxes of an invoice for its document, such as "VAT 19%": added taxes and taxes included in the amounts. */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type DocumentTax, formatTaxLabel } from '../../../core/invoicing/document/tax.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';

/** Rates with one label are one tax, for example after a rate was archived and created again. */
export async function loadPrintedTaxes(invoice: InvoiceModel, database: Database): Promise<DocumentTax[]> {
  const applied = await TaxAppliedModel.in(invoice, database)
    .where({ entity_type: 'invoice', entity_id: invoice.id, status: 'published' })
    .orderBy('position');
  const rates = await TaxRateModel.byId(
    invoice,
    applied.map(({ tax_rate_id }) => tax_rate_id),
    database,
  );
  const named = applied.map(({ tax_rate_id, tax_amount }) => {
    const rate = rates.get(tax_rate_id)!;
    return { label: formatTaxLabel(rate), amount: tax_amount, is_included: rate.tax_behavior === 'inclusive' };
  });
  const byLabel = groupBy(named, ({ label, is_included }) => `${is_included} ${label}`);
  return [...byLabel.values()].map((rows) => {
    const { label, is_included } = rows[0]!;
    return { label, is_included, amount: sumDecimals(rows.map(({ amount }) => new Decimal(amount))).toFixed() };
  });
}
