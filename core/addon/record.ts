/**
 * An add-on: what is sold beside a plan, with prices and entitlements of its own (docs/rules/records.md, "Add-ons"). An
 * association is one that is attached to a subscription.
 */
import { z } from 'zod';
import { anyCase, baseFields, freeMap, requiredKey, requiredName, timestampText } from '../record.ts';

export const ADDON_TYPES = ['onetime', 'multiple_instance'] as const;
export const ADDON_CADENCES = ['onetime', 'recurring'] as const;
export const ADDON_STATUSES = ['active', 'cancelled', 'pending', 'paused'] as const;

export const addonShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'What people call it.' }),
  lookup_key: requiredKey.meta({ description: 'A name of your own, of one published add-on. It cannot be changed.' }),
  description: z.string().nullable().meta({ description: 'For people.' }),
  type: anyCase(ADDON_TYPES).meta({
    description: 'onetime: a subscription has it once; multiple_instance: as often as it is attached.',
  }),
  metadata: freeMap.nullable().meta({ description: 'Values of your own; a map that is sent replaces the one before.' }),
  ...baseFields,
});
export type Addon = z.output<typeof addonShape>;

export const addonAssociationShape = z.object({
  id: z.string(),
  entity_type: z.enum(['subscription', 'plan', 'addon']).meta({ description: 'What has the add-on: a subscription.' }),
  entity_id: z.string().meta({ description: 'The id of that subscription.' }),
  addon_id: z.string().meta({ description: 'The add-on that is attached.' }),
  addon_status: z.enum(ADDON_STATUSES).meta({ description: 'cancelled once it has ended, or its subscription has.' }),
  quantity: z.int().meta({ description: 'How often it is held: its fixed lines and its limits are times this.' }),
  cadence: z
    .enum(ADDON_CADENCES)
    .meta({ description: 'onetime: for the period in which it begins; recurring: until it is detached.' }),
  start_date: timestampText.meta({ description: 'From when on it is held, and charged.' }),
  end_date: timestampText.nullable().meta({ description: 'Until when, exclusive; null is open.' }),
  cancellation_reason: z.string().nullable().meta({ description: 'As it was stated when it was detached.' }),
  cancelled_at: timestampText.nullable().meta({ description: 'When it was detached; null while it was not.' }),
  metadata: freeMap.nullable().meta({ description: 'Values of your own.' }),
  ...baseFields,
});
export type AddonAssociation = z.output<typeof addonAssociationShape>;
