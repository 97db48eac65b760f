/** Connections: accounts at providers, destinations of exports, and their credentials. */
import { archiveConnection } from '../../../actions/delivery/connections/archive-connection.ts';
import { changeConnection, createConnection } from '../../../actions/delivery/connections/connections.ts';
import { testConnection } from '../../../actions/delivery/connections/test-connection.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  ConnectionAnswer,
  ConnectionFilter,
  ConnectionListAnswer,
  ConnectionTestAnswer,
  CreateConnection,
  connectionGrammar,
  UpdateConnection,
} from './schema.ts';

const tag = 'Connections';

const connections = standardRoutes({
  noun: 'connection',
  tag,
  answer: ConnectionAnswer,
  model: ConnectionModel,
  show: (connection) => connection,
  list: { filter: ConnectionFilter, answer: ConnectionListAnswer, find: findConnections },
});

export const connectionRoutes: Route[] = [
  connections.create({
    summary: 'Create a connection',
    description:
      'Connects to an account at a provider, to S3 or a compatible service for exports, or to the export directory of the service. Credentials of an account are tested first; an environment has one connection per account provider. Live credentials need an environment of type production, test credentials another one. Credentials are never returned.',
    body: CreateConnection,
    handle: ({ body }, context) =>
      createConnection(context.services, context.scope, {
        fields: body,
        settings: context.services.config,
        author: toAuthor(context),
      }),
  }),
  connections.list,
  connections.search,
  connections.read({
    summary: 'Get a connection',
    description: 'Returns the connection without its credentials. An archived connection is returned too.',
  }),
  connections.change({
    summary: 'Update a connection',
    description:
      'Changes the name, the metadata, the exchanged records or the credentials. New credentials of an account are tested first, must belong to the same account, and make the connection active. Exports use new credentials from the next file on.',
    body: UpdateConnection,
    handle: ({ params, body }, context) =>
      changeConnection(context.services, context.scope, {
        id: params.id,
        changes: body,
        settings: context.services.config,
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'post',
    path: '/connections/:id/test',
    operation_id: 'testConnection',
    summary: 'Test a connection',
    description:
      "Reads the account at the provider with the stored credentials. Success makes the connection active; a refusal is answered with the provider's text. Refused for destinations of exports, and in an environment with a test clock.",
    tag,
    access: 'connection:write',
    params: idParams,
    success: 200,
    answer: ConnectionTestAnswer,
    idempotency: 'same',
    handle: async ({ params }, context) => {
      const { services, scope } = context;
      const test = { id: params.id, settings: services.config, author: toAuthor(context) };
      return { success: true, ...(await testConnection(services, scope, test)) };
    },
  }),
  route({
    method: 'delete',
    path: '/connections/:id',
    operation_id: 'deleteConnection',
    summary: 'Archive a connection',
    description:
      'Archives the connection and deletes its credentials. Refused while a scheduled task writes to it, or a payment or refund at its provider has no outcome, or a void page is not closed; a stopped connection abandons such pages. An interrupted request leaves `being_archived`: repeat it.',
    tag,
    access: 'connection:write',
    params: idParams,
    success: 204,
    handle: ({ params }, context) =>
      archiveConnection(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

async function findConnections(input: ConnectionFilter, { scope, services }: Context) {
  const query = narrow(ConnectionModel.in(scope, services.postgres), [
    ['id', input.connection_ids],
    ['provider_type', input.provider_type],
  ]);
  const { items, pagination } = await fetchPage(query, input, connectionGrammar);
  return { connections: items, ...pagination };
}
