/** Converts the taxes of an invoice to records that are stored and returned; those of a preview have no ids. */

import type { TaxApplied } from '../../../core/catalog/tax/applied.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { groupTaxableByRate } from '../../../core/invoicing/invoice/tax-by-rate.ts';
import type { AppliedTax } from '../../../core/rating/taxes.ts';
import { newId } from '../../../storage/foundation/new-id.ts';

type TaxRecordsInput = {
  readonly invoice: Invoice;
  readonly line_items: readonly InvoiceLineItem[];
  readonly author: Author;
};

/** Lists the taxes on charges first, then the taxes that credit lines return, with the rates of the original charges. */
export function taxRecords(
  applied: readonly AppliedTax[],
  { invoice, line_items, author }: TaxRecordsInput,
): (TaxApplied & { position: number })[] {
  const rows = [
    ...applied.map(({ by, taxable_amount, tax_amount }) => ({
      tax_rate_id: by.rate.id,
      tax_behavior: by.rate.tax_behavior,
      tax_association_id: by.tax_association_id,
      taxable_amount: taxable_amount.toFixed(),
      tax_amount: tax_amount.toFixed(),
    })),
    ...groupTaxableByRate(line_items),
  ];
  return rows.map((row, position) => ({
    ...createdBy(author),
    ...row,
    id: invoice.id === '' ? '' : newId('tax_applied', author.now.getTime()),
    tenant_id: invoice.tenant_id,
    environment_id: invoice.environment_id,
    position,
    entity_type: 'invoice' as const,
    entity_id: invoice.id,
    currency: invoice.currency,
    applied_at: author.now.toISOString(),
    idempotency_key: null,
    metadata: null,
  }));
}
