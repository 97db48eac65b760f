/** Tax by one rate on an invoice (docs/rules/taxes.md, "On an invoice"). */
import { z } from 'zod';
import { baseFields, decimalText, metadata, timestampText } from '../../foundation/record.ts';
import { TAX_BEHAVIORS, TAX_ENTITY_TYPES } from './record.ts';

export const TaxApplied = z.object({
  id: z.string(),
  tax_rate_id: z.string().meta({ description: 'Id of the tax rate.' }),
  entity_type: z.enum(TAX_ENTITY_TYPES).meta({ description: 'Type of the taxed record: invoice.' }),
  entity_id: z.string().meta({ description: 'Id of the invoice; empty in a preview.' }),
  tax_association_id: z.string().nullable().meta({
    description: 'Association of the rate; null for tax credited with credited lines.',
  }),
  taxable_amount: decimalText.meta({ description: 'Taxed amount; negative if tax is credited.' }),
  tax_amount: decimalText.meta({ description: 'Tax, rounded to the currency; negative if it is credited.' }),
  tax_behavior: z
    .enum(TAX_BEHAVIORS)
    .meta({ description: 'Whether the tax was added (`exclusive`) or is contained in the amounts (`inclusive`).' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), in lower case.' }),
  applied_at: timestampText.meta({ description: 'Time at which the invoice was finalized.' }),
  idempotency_key: z.string().nullable().meta({ description: 'Unused: always null.' }),
  metadata,
  ...baseFields,
});
export type TaxApplied = z.output<typeof TaxApplied>;
