/** What a tax rate came to on an invoice (docs/rules/taxes.md, "On an invoice"). */
import { z } from 'zod';
import { baseFields, decimalText, metadata, timestampText } from '../record.ts';
import { TAX_BEHAVIORS, TAX_ENTITY_TYPES } from './record.ts';

export const TaxApplied = z.object({
  id: z.string(),
  tax_rate_id: z.string().meta({ description: 'The rate.' }),
  entity_type: z.enum(TAX_ENTITY_TYPES).meta({ description: 'What was taxed: invoice.' }),
  entity_id: z.string().meta({ description: 'The id of the invoice; empty in a preview.' }),
  tax_association_id: z.string().nullable().meta({
    description: 'By which association; null of what is given back with the tax that it carried.',
  }),
  taxable_amount: decimalText.meta({ description: 'What was taxed; negative where tax is given back.' }),
  tax_amount: decimalText.meta({ description: 'The tax, rounded to the currency; negative where it is given back.' }),
  tax_behavior: z.enum(TAX_BEHAVIORS).meta({ description: 'exclusive was added, inclusive is in the amounts.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  applied_at: timestampText.meta({ description: 'When the invoice was made final.' }),
  idempotency_key: z.string().nullable().meta({ description: 'Not needed here: null.' }),
  metadata,
  ...baseFields,
});
export type TaxApplied = z.output<typeof TaxApplied>;
