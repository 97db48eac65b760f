/** Tax rates that are stated with a customer, a subscription or an invoice in the place of what stands (docs/rules/taxes.md). */
import { z } from 'zod';
import { invalid } from '../error.ts';
import { int32, metadata, orDefault, orNull, requiredKey } from '../record.ts';
import { DEFAULT_TAX_PRIORITY } from './record.ts';

const override = z.object({
  tax_rate_code: requiredKey.meta({ description: 'The code of a published rate that is ACTIVE.' }),
  currency: z.string().length(3).meta({ description: 'Only what is charged in this currency.' }),
  priority: orDefault(int32, DEFAULT_TAX_PRIORITY).meta({ description: 'Rates with a smaller one stand first.' }),
  auto_apply: orDefault(z.boolean(), true).meta({
    description: 'Of a customer: whether it is taxed with it unless something else is said; true when absent.',
  }),
  metadata,
});
export const taxOverrides = orNull(z.array(override).max(100));
export type TaxOverride = z.output<typeof override>;

/** What is charged in one currency is taxed in it. */
export function checkOverrides(overrides: readonly TaxOverride[], currency: string): void {
  for (const [index, input] of overrides.entries())
    if (input.currency.toLowerCase() !== currency.toLowerCase())
      throw invalid(`tax_rate_overrides[${index}].currency`, `is ${input.currency}, what is taxed is in ${currency}`);
}
