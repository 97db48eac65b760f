/**
 * An add-on: what is sold beside a plan, with prices and entitlements of its own (docs/rules/records.md, "Add-ons"). An
 * association is one that is attached to a subscription.
 */
import { z } from 'zod';
import { anyCase, baseFields, freeMap, givenKey, givenName, metadataMap, timestampText } from '../record.ts';

export const ADDON_TYPES = ['onetime', 'multiple_instance'] as const;
export const ADDON_STATUSES = ['active', 'cancelled', 'pending', 'paused'] as const;

export const addonShape = z.object({
  id: z.string(),
  name: givenName.meta({ description: 'What people call it.' }),
  lookup_key: givenKey.meta({ description: 'A name of your own, of one published add-on. It cannot be changed.' }),
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
  entity_type: z.enum(['subscription', 'plan', 'addon']),
  entity_id: z.string(),
  addon_id: z.string(),
  addon_status: z.enum(ADDON_STATUSES),
  quantity: z.int(),
  start_date: timestampText,
  end_date: timestampText.nullable(),
  cancellation_reason: z.string().nullable(),
  cancelled_at: timestampText.nullable(),
  metadata: metadataMap.nullable(),
  ...baseFields,
});
export type AddonAssociation = z.output<typeof addonAssociationShape>;
