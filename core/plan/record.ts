/**
 * A plan: a name under which prices are sold. It is created with what describes it alone, and prices are added to it. Its
 * lookup key is unique among published plans.
 */
import { z } from 'zod';
import { baseFields, int32, metadata, optionalKey, requiredName } from '../record.ts';

export const planShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'What people call it.' }),
  lookup_key: optionalKey.meta({
    description: 'A name of your own, of one published plan; made from its name when absent.',
  }),
  description: z.string().nullable().meta({ description: 'For people.' }),
  display_order: int32.nullable().meta({ description: 'Where it stands in a list of yours; nothing here goes by it.' }),
  metadata: metadata.unwrap(),
  ...baseFields,
});
export type Plan = z.output<typeof planShape>;

/** What a client states about a plan; the rest of the record is ours. */
export const planFields = planShape.pick({
  name: true,
  lookup_key: true,
  description: true,
  display_order: true,
  metadata: true,
});
export type PlanFields = z.output<typeof planFields>;
