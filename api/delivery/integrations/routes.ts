/** Mappings of records of this service to records of providers, and the exchange of records on request. */
import { createLink, removeLink, removeMapping } from '../../../actions/delivery/integrations/link.ts';
import { listIntegrationConfig } from '../../../actions/delivery/integrations/list-config.ts';
import { pullFromProviders, pushToProviders } from '../../../actions/delivery/integrations/sync-entity.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import type { Effects } from '../../http/effects.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import {
  CreateLink,
  CreateMapping,
  IntegrationConfigAnswer,
  LinkAnswer,
  MappedEntity,
  MappingAnswer,
  MappingListAnswer,
  RemoveLink,
  SyncEntity,
} from './schema.ts';

const tag = 'Integrations';
/** `limit` in the answer of the mapping list. The list is not paged: a record has at most one mapping per connected provider. */
const PROVIDERS_MAX = 50;

export const integrationRoutes: Route[] = [
  route({
    method: 'post',
    path: '/integrations/link',
    operation_id: 'linkIntegrationMapping',
    summary: 'Link a record to a provider',
    description:
      'States that a record of this service and a record of a connected provider are the same. Payment methods that the provider has saved for a customer are imported afterwards; a failure of the provider does not undo the link. Refused with 409 if one of them is linked already.',
    tag,
    access: 'integration:write',
    body: CreateLink,
    success: 200,
    answer: LinkAnswer,
    idempotency: { replay: async (done, _input, context) => ({ mapping: await fetchCreated(done, context) }) },
    handle: async ({ body }, context) => ({
      mapping: await createLink(context.services, context.scope, { link: body, author: toAuthor(context) }),
    }),
  }),
  route({
    method: 'delete',
    path: '/integrations/link',
    operation_id: 'unlinkIntegrationMapping',
    summary: 'Unlink a record from a provider',
    description:
      'Separates the two records and changes none of them. A record that is being sent is unlinked too; its counterpart may still be created. A customer is refused with 400 while its payment at the provider has no outcome or its page there is open.',
    tag,
    access: 'integration:write',
    body: RemoveLink,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ body }, context) => {
      await removeLink(context.services, context.scope, { link: body, author: toAuthor(context) });
      return { message: 'integration mapping removed' };
    },
  }),
  route({
    method: 'get',
    path: '/integrations/mappings',
    operation_id: 'listIntegrationMappings',
    summary: 'List mappings of a record',
    description: 'Returns the counterparts of a record, at most one per connected provider.',
    tag,
    access: 'integration:read',
    query: MappedEntity,
    success: 200,
    answer: MappingListAnswer,
    handle: async ({ query }, { scope, services }) => {
      const items = await IntegrationMappingModel.in(scope, services.postgres)
        .where({ ...query, status: 'published' })
        .orderBy('id');
      return { items, pagination: { total: items.length, limit: PROVIDERS_MAX, offset: 0, next_cursor: null } };
    },
  }),
  route({
    method: 'get',
    path: '/integrations/config',
    operation_id: 'getIntegrationConfig',
    summary: 'Get the integration configuration',
    description: 'Returns what each connection can exchange with its provider, and what it does exchange.',
    tag,
    access: 'integration:read',
    success: 200,
    answer: IntegrationConfigAnswer,
    handle: async (_input, { services, scope }) => ({ integrations: await listIntegrationConfig(services, scope) }),
  }),
  route({
    method: 'post',
    path: '/integrations/sync',
    operation_id: 'syncIntegration',
    summary: 'Send or read a record',
    description:
      '`push` sends a customer, a final invoice, a received payment, a final credit note or a subscription to each connected provider that receives its kind: an invoice after its customer, money only after its invoice. A record that is there already is not sent again; of a subscription the status is. 409 while another request or the job of the connection sends the record. `pull` makes an invoice, or the saved payment methods of a customer, due to be read. Refused if no connected provider supports it.',
    tag,
    access: 'integration:write',
    body: SyncEntity,
    success: 200,
    answer: MessageAnswer,
    idempotency: 'same',
    handle: async ({ body: { method, ...entity } }, context) => {
      const { services, scope } = context;
      const author = toAuthor(context);
      const { entity_type, entity_id } = entity;
      if (method === 'pull') {
        const providers = await pullFromProviders(services, scope, { entity, author });
        return { message: `${entity_type} ${entity_id} will be read from ${providers.join(', ')}` };
      }
      const providers = await pushToProviders(services, scope, { entity, settings: services.config, author });
      return { message: `${entity_type} ${entity_id} is at ${providers.join(', ')}` };
    },
  }),
  route({
    method: 'post',
    path: '/entity-integration-mappings',
    operation_id: 'createEntityIntegrationMapping',
    summary: 'Create a mapping',
    description: 'Links a record to a provider, like `POST /integrations/link`; for older clients.',
    tag,
    access: 'integration:write',
    body: CreateMapping,
    success: 201,
    answer: MappingAnswer,
    idempotency: { replay: (done, _input, context) => fetchCreated(done, context) },
    handle: ({ body }, context) =>
      createLink(context.services, context.scope, { link: body, author: toAuthor(context) }),
  }),
  route({
    method: 'delete',
    path: '/entity-integration-mappings/:id',
    operation_id: 'deleteEntityIntegrationMapping',
    summary: 'Delete a mapping',
    description:
      'Unlinks the record of this mapping, like `DELETE /integrations/link`, with the same refusals; for older clients.',
    tag,
    access: 'integration:write',
    params: idParams,
    success: 204,
    handle: ({ params }, context) =>
      removeMapping(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

function fetchCreated(done: Effects, { scope, services }: Context): Promise<IntegrationMappingModel> {
  return IntegrationMappingModel.fetch(scope, done.made('integration_mapping'), { database: services.postgres });
}
