/** Sums up the tax of credited lines by rate (docs/rules/invoices.md, "What is given back"). */

import type { LineTax } from '../../catalog/tax/line-tax.ts';
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { computeDiscountedAmount } from '../../rating/adjustment-fields.ts';
import type { InvoiceLineItem } from './record.ts';

type CreditedTax = LineTax & { readonly taxable_amount: string; readonly tax_association_id: null };

export function groupTaxableByRate(lines: readonly InvoiceLineItem[]): CreditedTax[] {
  const rates = new Map<string, LineTax & { net: Decimal; tax: Decimal }>();
  for (const line of lines.filter(({ amount }) => new Decimal(amount).isNegative())) {
    const net = computeDiscountedAmount(line);
    for (const share of line.taxes ?? []) {
      const key = `${share.tax_rate_id} ${share.tax_behavior}`;
      const before = rates.get(key) ?? { net: ZERO, tax: ZERO };
      rates.set(key, { ...share, net: before.net.plus(net), tax: before.tax.plus(share.tax_amount) });
    }
  }
  return Array.from(rates.values(), ({ net, tax, tax_rate_id, tax_behavior }) => ({
    tax_rate_id,
    tax_behavior,
    tax_amount: tax.toFixed(),
    taxable_amount: net.toFixed(),
    tax_association_id: null,
  }));
}
