/** The share that one line of an invoice has of what one rate came to. */
import { z } from 'zod';
import { type Decimal, sumDecimals } from '../decimal.ts';
import { decimalText } from '../record.ts';
import { TAX_BEHAVIORS } from './record.ts';

export const LineTax = z.object({
  tax_rate_id: z.string().meta({ description: 'The rate.' }),
  tax_behavior: z.enum(TAX_BEHAVIORS).meta({ description: 'exclusive was added, inclusive is in the amount.' }),
  tax_amount: decimalText.meta({ description: 'Negative where tax is given back.' }),
});
export type LineTax = z.output<typeof LineTax>;

/** The same to reckon with. */
export type TaxShare = Omit<LineTax, 'tax_amount'> & { readonly tax_amount: Decimal };

export function sumTax(shares: readonly TaxShare[], behavior: TaxShare['tax_behavior']): Decimal {
  return sumDecimals(
    shares.filter(({ tax_behavior }) => tax_behavior === behavior).map(({ tax_amount }) => tax_amount),
  );
}

export function toLineTaxes(shares: readonly TaxShare[]): LineTax[] | null {
  if (shares.length === 0) return null;
  return shares.map((share) => ({ ...share, tax_amount: share.tax_amount.toFixed() }));
}
