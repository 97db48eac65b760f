/** Taxes on a document. */
import { Decimal } from '../../foundation/decimal.ts';

/** A tax of the invoice with its label, such as "VAT 19%". If it is included, the amounts contain it already. */
export type DocumentTax = { readonly label: string; readonly amount: string; readonly is_included?: boolean };

type NamedRate = { readonly name: string; readonly percentage_value?: string | null | undefined };

/** Appends the percentage to the name, unless the name states a percentage of this value already. */
export function formatTaxLabel({ name, percentage_value }: NamedRate): string {
  if (percentage_value === null || percentage_value === undefined) return name;
  const percentages = [...name.matchAll(/(\d+(?:[.,]\d+)?)\s*%/g)].map(
    ([, number]) => new Decimal(number!.replace(',', '.')),
  );
  return percentages.some((number) => number.eq(percentage_value)) ? name : `${name} ${percentage_value}%`;
}
