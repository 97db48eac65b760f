/** A cost sheet: a name under which the prices stand that something costs its seller (docs/rules/pricing.md, "Cost sheets"). */
import { z } from 'zod';
import { baseFields, description, metadata, optionalKey, requiredName } from '../record.ts';

/** What a client states of a new cost sheet, as it is stored. */
export const costsheetFields = z.object({
  name: requiredName.meta({ description: 'What people call it; of one published cost sheet.' }),
  lookup_key: optionalKey.default(null).meta({ description: 'A name of your own, of one published cost sheet.' }),
  description,
  metadata,
});

export const costsheetShape = costsheetFields.extend({ id: z.string(), ...baseFields });
export type Costsheet = z.output<typeof costsheetShape>;
