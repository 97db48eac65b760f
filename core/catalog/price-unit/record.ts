/**
 * A price unit is a tenant's own currency, such as credits or tokens, with its conversion rate to money (docs/rules/pricing.md, "Prices in
 * units of your own").
 */
import { z } from 'zod';
import { checkCurrency } from '../../foundation/money.ts';
import { baseFields, decimalText, metadata, requiredKey, requiredName } from '../../foundation/record.ts';
import { checkPriceUnit } from '../pricing/price-unit.ts';

/** Fields of a request that creates a price unit, as they are stored. */
export const priceUnitFields = z.object({
  name: requiredName.meta({ description: 'Display name of the unit.' }),
  code: requiredKey.meta({
    description:
      'Code by which prices name the unit, case-insensitive: 2 to 12 letters, digits, underscores or hyphens. It is unique among published units.',
  }),
  symbol: requiredKey.meta({ description: 'Symbol in front of an amount of the unit.' }),
  base_currency: z.string().meta({ description: 'Currency that the unit converts to (ISO 4217), case-insensitive.' }),
  conversion_rate: decimalText.meta({ description: 'Value of one unit in the base currency; greater than 0.' }),
  metadata,
});
type PriceUnitFields = z.output<typeof priceUnitFields>;

export const priceUnitShape = priceUnitFields.extend({ id: z.string(), ...baseFields });
export type PriceUnit = z.output<typeof priceUnitShape>;

export function definePriceUnit(input: PriceUnitFields): PriceUnitFields {
  checkPriceUnit(input);
  return { ...input, base_currency: checkCurrency(input.base_currency, 'base_currency') };
}
