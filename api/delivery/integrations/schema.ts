/** Requests and answers of mappings and of the exchange with providers. */
import { z } from 'zod';
import { CAPABILITY_NAMES } from '../../../actions/delivery/integrations/list-config.ts';
import { anyCase, keyText, metadata, orDefault, requiredKey } from '../../../core/foundation/record.ts';
import { syncConfigShape } from '../../../core/platform/connection/sync-config.ts';
import {
  integrationMappingShape,
  MAPPED_ENTITY_TYPES,
  mappedEntity,
} from '../../../core/platform/integration/mapping.ts';
import { listAnswer } from '../../http/list.ts';
import { providerType } from '../connections/schema.ts';

const provider_type = keyText
  .max(50)
  .min(1)
  .meta({ description: 'Provider, to which the environment has a connection.' });

const linkFields = {
  ...mappedEntity,
  provider_type,
  provider_entity_id: requiredKey.meta({ description: 'Id of the counterpart at the provider.' }),
  metadata,
};

export const CreateLink = z.object(linkFields).meta({
  id: 'LinkIntegrationMappingRequest',
  example: {
    entity_type: 'customer',
    entity_id: 'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
    provider_type: 'stripe',
    provider_entity_id: 'cus_9s6XKzkNRiz8i3',
  },
});

export const CreateMapping = z.object(linkFields).meta({
  id: 'CreateEntityIntegrationMappingRequest',
  example: {
    entity_type: 'plan',
    entity_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
    provider_type: 'stripe',
    provider_entity_id: 'prod_NWjs8kKbJWmuuc',
  },
});

export const RemoveLink = z.object({ ...mappedEntity, provider_type }).meta({
  id: 'DelinkIntegrationMappingRequest',
  example: { entity_type: 'customer', entity_id: 'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X', provider_type: 'stripe' },
});

export const SyncEntity = z
  .object({
    ...mappedEntity,
    method: orDefault(anyCase(['push', 'pull']), 'push').meta({
      description: '`push` sends the record to the providers, `pull` reads its counterparts. Default: push.',
    }),
  })
  .meta({
    id: 'IntegrationSyncRequest',
    example: { entity_type: 'customer', entity_id: 'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X', method: 'push' },
  });

export const MappingAnswer = integrationMappingShape.meta({ id: 'EntityIntegrationMappingResponse' });
export const MappingListAnswer = listAnswer(MappingAnswer, 'ListEntityIntegrationMappingsResponse');
export const LinkAnswer = z
  .object({ mapping: MappingAnswer.meta({ description: 'The new mapping.' }) })
  .meta({ id: 'LinkIntegrationMappingResponse' });

/** `entity_type` is a string first: `anyCase` accepts any value, and the documentation would call such a query parameter optional. */
export const MappedEntity = z.object({
  ...mappedEntity,
  entity_type: z
    .string()
    .toLowerCase()
    .pipe(z.enum(MAPPED_ENTITY_TYPES))
    .meta({ description: 'Kind of the record.', enum: [...MAPPED_ENTITY_TYPES], example: 'customer' }),
});

export const IntegrationConfigAnswer = z
  .object({
    integrations: z
      .array(
        z.object({
          provider: providerType,
          connection_id: z.string().meta({ description: 'Connection to the provider.' }),
          base_config: syncConfigShape.meta({ description: 'Records that the provider can exchange, by direction.' }),
          current_config: syncConfigShape.nullable().meta({
            description: 'Records that the connection exchanges; null means all that the provider can exchange.',
          }),
          capabilities: z
            .array(z.enum(CAPABILITY_NAMES))
            .meta({ description: 'Exchanges that the service supports with this provider.' }),
        }),
      )
      .meta({ description: 'An entry for each published connection.' }),
  })
  .meta({ id: 'IntegrationConfigResponse' });
