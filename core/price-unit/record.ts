/**
 * A price unit: a currency of a tenant's own, such as credits or tokens, with the rate at which it becomes money
 * (docs/rules/pricing.md, "Prices in units of your own").
 */
import { z } from 'zod';
import { checkCurrency } from '../money.ts';
import { checkPriceUnit } from '../pricing/price-unit.ts';
import { baseFields, decimalText, metadata, requiredKey, requiredName } from '../record.ts';

/** What a client states of a new price unit, as it is stored. */
export const priceUnitFields = z.object({
  name: requiredName.meta({ description: 'What people call it.' }),
  code: requiredKey.meta({
    description:
      'How prices name it, in any case: 2 to 12 letters, digits, underscores or hyphens; of one published unit.',
  }),
  symbol: requiredKey.meta({ description: 'What stands before an amount of it.' }),
  base_currency: z.string().meta({ description: 'The currency that it becomes, as ISO 4217 has it, in any case.' }),
  conversion_rate: decimalText.meta({ description: 'What one of it is in the base currency; greater than 0.' }),
  metadata,
});
export type PriceUnitFields = z.output<typeof priceUnitFields>;

export const priceUnitShape = priceUnitFields.extend({ id: z.string(), ...baseFields });
export type PriceUnit = z.output<typeof priceUnitShape>;

/** The unit that a request asks for. */
export function definePriceUnit(input: PriceUnitFields): PriceUnitFields {
  checkPriceUnit(input);
  return { ...input, base_currency: checkCurrency(input.base_currency, 'base_currency') };
}
