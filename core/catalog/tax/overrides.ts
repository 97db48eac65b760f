/** Tax rates in a request for a customer, a subscription or an invoice, which replace the inherited ones (docs/rules/taxes.md). */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { int32, metadata, orDefault, orNull, requiredKey } from '../../foundation/record.ts';
import { DEFAULT_TAX_PRIORITY } from './record.ts';

const override = z.object({
  tax_rate_code: requiredKey.meta({ description: 'Code of a published rate that is ACTIVE.' }),
  currency: z
    .string()
    .length(3)
    .meta({ description: 'Currency code (ISO 4217), case-insensitive: the rate taxes only charges in this currency.' }),
  priority: orDefault(int32, DEFAULT_TAX_PRIORITY).meta({
    description: 'Order of the rates: a smaller priority comes first. Default: 100.',
  }),
  auto_apply: orDefault(z.boolean(), true).meta({
    description:
      'For a customer: whether the rate applies to subscriptions and invoices without rates of their own. Default: true.',
  }),
  metadata,
});
export const taxOverrides = orNull(z.array(override).max(100));
export type TaxOverride = z.output<typeof override>;

/** Checks the overrides; refuses a rate for another currency. */
export function checkOverrides(overrides: readonly TaxOverride[], currency: string): void {
  for (const [index, input] of overrides.entries())
    if (input.currency.toLowerCase() !== currency.toLowerCase())
      throw invalid(`tax_rate_overrides[${index}].currency`, `is ${input.currency}, what is taxed is in ${currency}`);
}
