/**
 * An add-on is sold beside a plan, with its own prices and entitlements (docs/rules/records.md, "Add-ons"). An
 * association is one attachment to a subscription.
 */
import { z } from 'zod';
import { anyCase, baseFields, freeMap, requiredKey, requiredName, timestampText } from '../../foundation/record.ts';

export const ADDON_TYPES = ['onetime', 'multiple_instance'] as const;
export const ADDON_CADENCES = ['onetime', 'recurring'] as const;
const ADDON_STATUSES = ['active', 'cancelled', 'pending', 'paused'] as const;

export const addonShape = z.object({
  id: z.string(),
  name: requiredName.meta({ description: 'Display name.' }),
  lookup_key: requiredKey.meta({ description: 'Your own name, unique among published add-ons. It cannot be changed.' }),
  description: z.string().nullable().meta({ description: 'Description for your records.' }),
  type: anyCase(ADDON_TYPES).meta({
    description:
      'Number of attachments to a subscription: once at a time (onetime), or any number (multiple_instance).',
  }),
  metadata: freeMap.nullable().meta({ description: 'Your own key-value pairs. An update replaces all of them.' }),
  ...baseFields,
});
export type Addon = z.output<typeof addonShape>;

export const addonAssociationShape = z.object({
  id: z.string(),
  entity_type: z.enum(['subscription', 'plan', 'addon']).meta({ description: 'Kind of owner; always a subscription.' }),
  entity_id: z.string().meta({ description: 'Id of the subscription.' }),
  addon_id: z.string().meta({ description: 'Add-on that is attached.' }),
  addon_status: z
    .enum(ADDON_STATUSES)
    .meta({ description: 'Status. It is cancelled after the attachment or its subscription has ended.' }),
  quantity: z.int().meta({ description: 'Multiplier of the add-on’s fixed lines and limits.' }),
  cadence: z.enum(ADDON_CADENCES).meta({
    description:
      'Duration of the attachment. onetime lasts for the period in which it begins; recurring lasts until it is detached.',
  }),
  start_date: timestampText.meta({ description: 'Start of the attachment and its charges.' }),
  end_date: timestampText.nullable().meta({ description: 'Exclusive end; null without an end.' }),
  cancellation_reason: z.string().nullable().meta({ description: 'Reason given when the add-on was detached.' }),
  cancelled_at: timestampText
    .nullable()
    .meta({ description: 'Instant at which the add-on was detached; null otherwise.' }),
  metadata: freeMap.nullable().meta({ description: 'Your own key-value pairs.' }),
  ...baseFields,
});
export type AddonAssociation = z.output<typeof addonAssociationShape>;
