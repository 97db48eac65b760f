/**
 * A plan: a name under which prices, entitlements and credit grants are sold (api/04-plans). "Plan creation takes only
 * descriptive fields; prices, entitlements and credit grants are created separately." Its lookup key is unique among
 * published plans.
 */
import { z } from 'zod';
import { baseFields, metadata, wholeNumber } from './record.ts';

/** Keys and names are kept in indexes, which hold no texts of any length. */
export const KEY_LENGTH_MAX = 255;

/** Clients written in languages without null send "" for a key that is not set. */
export const optionalKey = z
  .string()
  .max(KEY_LENGTH_MAX)
  .nullable()
  .transform((text) => (text?.trim() ? text : null))
  .pipe(z.string().nullable());

/** A key that must be given. */
export const givenKey = z
  .string()
  .max(KEY_LENGTH_MAX)
  .refine((text) => text.trim() !== '', { error: 'must not be blank' });

export const givenName = z
  .string()
  .max(KEY_LENGTH_MAX)
  .refine((text) => text.trim() !== '', { error: 'must not be blank' });

export const planShape = z.object({
  id: z.string(),
  name: givenName,
  lookup_key: optionalKey,
  description: z.string().nullable(),
  display_order: wholeNumber.pipe(z.int32()).nullable(),
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
