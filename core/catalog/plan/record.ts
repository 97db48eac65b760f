/**
 * A plan is a name under which prices are sold. It is created with descriptive fields only; prices are added later. Its lookup key is
 * unique among published plans.
 */
import { z } from 'zod';
import { baseFields, int32, metadata, optionalKey, requiredName } from '../../foundation/record.ts';

export const planShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'Display name of the plan.' }),
  lookup_key: optionalKey.meta({
    description: 'Your own key of the plan; unique among published plans. Default: derived from the name.',
  }),
  description: z.string().nullable().meta({ description: 'Description for people; null if none.' }),
  display_order: int32.nullable().meta({ description: 'Position in your own lists; the service does not use it.' }),
  metadata: metadata.unwrap(),
  ...baseFields,
});
export type Plan = z.output<typeof planShape>;

/** Fields of a plan that a client sets. */
export const planFields = planShape.pick({
  name: true,
  lookup_key: true,
  description: true,
  display_order: true,
  metadata: true,
});
export type PlanFields = z.output<typeof planFields>;
