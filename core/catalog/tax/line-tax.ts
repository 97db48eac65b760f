/** Share of one invoice line in the tax of one rate. */
import { z } from 'zod';
import { type Decimal, sumDecimals } from '../../foundation/decimal.ts';
import { decimalText } from '../../foundation/record.ts';
import { TAX_BEHAVIORS } from './record.ts';

export const LineTax = z.object({
  tax_rate_id: z.string().meta({ description: 'Id of the tax rate.' }),
  tax_behavior: z
    .enum(TAX_BEHAVIORS)
    .meta({ description: 'Whether the tax was added (`exclusive`) or is contained in the amount (`inclusive`).' }),
  tax_amount: decimalText.meta({ description: 'Tax of the line; negative if it is credited.' }),
});
export type LineTax = z.output<typeof LineTax>;

/** A `LineTax` with a decimal for computation. */
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
