/** A cost sheet groups prices that state costs of the seller (docs/rules/pricing.md, "Cost sheets"). */
import { z } from 'zod';
import { baseFields, description, metadata, optionalKey, requiredName } from '../../foundation/record.ts';

/** Fields of a request that creates a cost sheet, as they are stored. */
export const costsheetFields = z.object({
  name: requiredName.meta({ description: 'Display name; unique among published cost sheets.' }),
  lookup_key: optionalKey
    .default(null)
    .meta({ description: 'Your own key of the cost sheet; unique among published cost sheets. Default: null.' }),
  description,
  metadata,
});

export const costsheetShape = costsheetFields.extend({ id: z.string(), ...baseFields });
export type Costsheet = z.output<typeof costsheetShape>;
