/** Connections: destinations of exports and their credentials. */
import {
  archiveConnection,
  changeConnection,
  createConnection,
} from '../../../actions/reporting/exports/connections.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { ConnectionModel } from '../../../storage/models/reporting/connection.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  ConnectionAnswer,
  ConnectionFilter,
  ConnectionListAnswer,
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
      'Connects to S3 or a compatible service, with credentials to write files, or to the export directory of the service, without credentials. Credentials are never returned. A directory is refused if the service has none.',
    body: CreateConnection,
    handle: ({ body }, context) =>
      createConnection(context.services, context.scope, {
        fields: body,
        has_directory: context.services.config.EXPORT_DIRECTORY !== undefined,
        author: toAuthor(context),
        sealing: buildSealing(context),
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
    description: 'Changes the name, the metadata or the credentials. New credentials apply from the next file on.',
    body: UpdateConnection,
    handle: ({ params, body }, context) =>
      changeConnection(context.services, context.scope, {
        id: params.id,
        changes: body,
        author: toAuthor(context),
        sealing: buildSealing(context),
      }),
  }),
  route({
    method: 'delete',
    path: '/connections/:id',
    operation_id: 'deleteConnection',
    summary: 'Archive a connection',
    description: 'Archives the connection and deletes its credentials. Refused while a scheduled task writes to it.',
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

function buildSealing({ services }: Context) {
  return createSealer(services.config.SECRETS_KEYS);
}
