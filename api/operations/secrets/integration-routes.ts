/** Older operations for the credentials of providers. Each set of credentials belongs to a connection. */
import { archiveConnection } from '../../../actions/delivery/connections/archive-connection.ts';
import {
  findProviderConnection,
  listProviders,
  storeCredentials,
} from '../../../actions/delivery/connections/provider-credentials.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { CreateIntegration, IntegrationProvider, LinkedIntegrationsAnswer, SecretAnswer } from './schema.ts';

const tag = 'Integrations';

export const integrationSecretRoutes: Route[] = [
  route({
    method: 'post',
    path: '/secrets/integrations/create/:provider',
    operation_id: 'createOrUpdateIntegration',
    summary: 'Store credentials of a provider',
    description:
      'Creates a connection to the provider, or gives the existing one new credentials, with the checks of `POST /connections`; for older clients.',
    tag,
    access: 'connection:write',
    params: IntegrationProvider,
    body: CreateIntegration,
    success: 201,
    answer: SecretAnswer,
    idempotency: {
      replay: async (done, _input, { scope, services }) =>
        showCredentials(
          await ConnectionModel.fetch(scope, done.touched('connection'), { database: services.postgres }),
        ),
    },
    handle: async ({ params: { provider }, body }, context) => {
      if (body.provider !== provider.toLowerCase())
        throw invalid('provider', `is ${body.provider}, the path has ${provider}`);
      const { services, scope } = context;
      const input = { ...body, settings: services.config, author: toAuthor(context) };
      return showCredentials(await storeCredentials(services, scope, input));
    },
  }),
  route({
    method: 'get',
    path: '/secrets/integrations/by-provider/:provider',
    operation_id: 'getIntegration',
    summary: 'Get credentials of a provider',
    description: 'Returns the record of the stored credentials, never the credentials; for older clients.',
    tag,
    access: 'connection:read',
    params: IntegrationProvider,
    success: 200,
    answer: SecretAnswer,
    handle: async ({ params }, { scope, services }) =>
      showCredentials(await findProviderConnection(services, scope, params.provider)),
  }),
  route({
    method: 'get',
    path: '/secrets/integrations/linked',
    operation_id: 'listLinkedIntegrations',
    summary: 'List providers with credentials',
    description: 'Returns the providers whose credentials the environment has; for older clients.',
    tag,
    access: 'connection:read',
    success: 200,
    answer: LinkedIntegrationsAnswer,
    handle: async (_input, { scope, services }) => ({ providers: await listProviders(services, scope) }),
  }),
  route({
    method: 'delete',
    path: '/secrets/integrations/:id',
    operation_id: 'deleteIntegration',
    summary: 'Delete credentials of a provider',
    description:
      'Archives the connection and deletes its credentials, like `DELETE /connections/{id}`; for older clients.',
    tag,
    access: 'connection:write',
    params: idParams,
    success: 204,
    handle: ({ params }, context) =>
      archiveConnection(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

/** Shows the credentials of a provider in the form of other stored secrets. */
function showCredentials({ provider_type, provider_account_id, created_by, ...connection }: ConnectionModel) {
  return {
    ...connection,
    type: 'integration',
    provider: provider_type,
    display_id: provider_account_id ?? '',
    user_id: created_by,
  };
}
