/**
 * A mapping links a record of this service to the record at a provider that represents it, its counterpart (docs/integrations/README.md,
 * "Mappings"). It is `intended` before the call that creates the counterpart, `made` once the id of the counterpart is known, and `gone`
 * after the two were unlinked.
 */
import { z } from 'zod';
import { anyCase, baseFields, metadata, requiredKey } from '../../foundation/record.ts';

/** Values of `entity_type` of a mapping in the API. */
export const MAPPED_ENTITY_TYPES = [
  'customer',
  'plan',
  'invoice',
  'subscription',
  'payment',
  'credit_note',
  'addon',
  'item',
  'item_price',
  'price',
  'invoice_line_item',
  'subscription_line_item',
] as const;
export type MappedEntityType = (typeof MAPPED_ENTITY_TYPES)[number];

const MAPPING_STATES = ['intended', 'made', 'gone'] as const;

export const mappedEntity = {
  entity_type: anyCase(MAPPED_ENTITY_TYPES).meta({
    description: 'Kind of the record. `item` and `item_price` have no records here and are refused.',
  }),
  entity_id: requiredKey.meta({ description: 'Id of the record in this service.' }),
};

export const integrationMappingShape = z.object({
  id: z.string(),
  connection_id: z.string().meta({ description: 'Connection to the provider.' }),
  provider_type: z.string().meta({ description: 'Provider that has the counterpart.' }),
  entity_type: mappedEntity.entity_type.meta({ description: 'Kind of the record in this service.' }),
  entity_id: z.string().meta({ description: 'Id of the record in this service.' }),
  provider_entity_id: z.string().nullable().meta({ description: 'Id of the counterpart at the provider.' }),
  mapping_state: z.enum(MAPPING_STATES).meta({
    description: 'State: `intended` while the counterpart is being created, `made`, or `gone` after it was unlinked.',
  }),
  url: z.string().nullable().meta({ description: 'Page of the counterpart at the provider; null without one.' }),
  push_error: z.string().nullable().meta({
    description:
      'Reason for which the provider refused the record; null without a refusal. The record is sent again on request.',
  }),
  metadata,
  ...baseFields,
  attention_reason: z.string().nullable().meta({
    description: 'How the counterpart differs in a way that a person has to resolve; null if it does not.',
  }),
});
export type IntegrationMapping = z.output<typeof integrationMappingShape>;
