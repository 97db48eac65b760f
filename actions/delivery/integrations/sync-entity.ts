/** On request, pushes a record to every connected provider that accepts its type, or makes its mapping due for a pull. */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { isMoneyRead, isSynced } from '../../../core/platform/connection/sync-config.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { addReadJob } from '../../../storage/queue/provider-events.ts';
import {
  type AccountCallSettings,
  findAccountCapability,
  toAnswerError,
} from '../../foundation/connections/call-account.ts';
import { listAccountConnections } from '../../foundation/connections/find-connections.ts';
import type { MappedEntity } from '../../foundation/connections/mappings.ts';
import { checkEntityExists } from './entities.ts';
import { canPush, isPushed, pushEntity } from './push-entity.ts';

type SyncInput = {
  readonly entity: MappedEntity;
  readonly settings: AccountCallSettings;
  readonly author: Author;
};

/**
 * Pushes the record to every provider that accepts its type, and returns these providers. All are tried before the
 * first failure is thrown.
 */
export async function pushToProviders(
  stores: Postgres,
  scope: Scope,
  { entity: { entity_type, entity_id }, settings, author }: SyncInput,
): Promise<string[]> {
  const connections = await listConnections(stores, scope, { entity_type, entity_id });
  if (!isPushed(entity_type)) throw notAllowed(`no connected provider receives ${entity_type}s`);
  const capable = connections.filter((connection) => canPush(connection, entity_type));
  if (capable.length === 0) throw notAllowed(`no connected provider receives ${entity_type}s`);
  const failures: unknown[] = [];
  for (const connection of capable)
    try {
      await pushEntity(stores, scope, { connection, entity_type, entity_id, settings, author });
    } catch (error) {
      failures.push(toAnswerError(error, connection));
    }
  if (failures.length > 0) throw failures[0];
  return toProviders(capable);
}

/** Makes the mapping due, so that the next run of the pull reads the record from the provider. */
export async function pullFromProviders(
  stores: Postgres,
  scope: Scope,
  { entity, author }: Omit<SyncInput, 'settings'>,
): Promise<string[]> {
  const { entity_type, entity_id } = entity;
  const capable = (await listConnections(stores, scope, entity)).filter((connection) => canPull(connection, entity));
  if (capable.length === 0) throw notAllowed(`${entity_type}s are not read from any connected provider`);
  const pulled = await stores.postgres.transaction(async (database) => {
    const due: ConnectionModel[] = [];
    for (const connection of capable) {
      const key = { connection_id: connection.id, ...entity };
      const mapping = await IntegrationMappingModel.findCurrent(scope, key, { database, lock: true });
      if (mapping?.mapping_state !== 'made') continue;
      await IntegrationMappingModel.change(
        mapping,
        { next_pull_at: author.now.toISOString() },
        { by: author, database },
      );
      await addReadJob(database, connection);
      due.push(connection);
    }
    return due;
  });
  if (pulled.length === 0)
    throw notAllowed(`${entity_type} ${entity_id} is linked to no provider that it is read from`);
  return toProviders(pulled);
}

/** Whether the provider's record can be read: an invoice, or the payment methods of a customer. */
function canPull(connection: ConnectionModel, { entity_type }: MappedEntity): boolean {
  const { sync_config } = connection;
  const { exchanges } = findAccountCapability(connection);
  if (entity_type === 'customer') return exchanges.includes('saved_card') && isMoneyRead(sync_config);
  const isRead = isSynced(sync_config, { entity: 'invoice', direction: 'inbound' });
  return entity_type === 'invoice' && exchanges.includes('pull') && isRead;
}

async function listConnections({ postgres }: Postgres, scope: Scope, entity: MappedEntity): Promise<ConnectionModel[]> {
  await checkEntityExists(scope, entity, postgres);
  return listAccountConnections(scope, postgres);
}

function toProviders(connections: readonly ConnectionModel[]): string[] {
  return connections.map(({ provider_type }) => provider_type);
}
