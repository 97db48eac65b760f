/** Credentials of a provider by name, for older clients: an environment has one connection to each provider. */
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Database, Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { type ConnectionSettings, changeConnection, createConnection } from './connections.ts';
import { parseSecrets } from './secret-shapes.ts';

type CredentialsInput = {
  readonly name: string;
  readonly provider: string;
  readonly credentials: Readonly<Record<string, string>>;
  readonly settings: ConnectionSettings;
  readonly author: Author;
};

/** Changes the connection to the provider, or creates it. */
export async function storeCredentials(
  stores: Postgres,
  scope: Scope,
  { name, provider, credentials, settings, author }: CredentialsInput,
): Promise<ConnectionModel> {
  const encrypted_secret_data = { [provider]: parseSecrets(provider, credentials, 'credentials') };
  const [existing] = await listConnections(scope, provider, stores.postgres);
  const common = { settings, author };
  if (existing) {
    const changes = { name, encrypted_secret_data };
    return changeConnection(stores, scope, { id: existing.id, changes, ...common });
  }
  const fields = { name, provider_type: provider, metadata: null, sync_config: null, encrypted_secret_data };
  return createConnection(stores, scope, { fields, ...common });
}

/** Finds the newest connection to the provider that has credentials. */
export async function findProviderConnection(
  { postgres }: Postgres,
  scope: Scope,
  provider: string,
): Promise<ConnectionModel> {
  const [found] = await listConnections(scope, provider, postgres);
  if (!found) throw notFound('integration', provider);
  return found;
}

async function listConnections(scope: Scope, provider: string, database: Database): Promise<ConnectionModel[]> {
  return await ConnectionModel.in(scope, database)
    .where({ provider_type: provider.toLowerCase(), status: 'published' })
    .whereNot('secret', '')
    .orderBy('id', 'desc');
}

/** Lists the providers for which the environment has credentials. */
export async function listProviders({ postgres }: Postgres, scope: Scope): Promise<string[]> {
  const connections = await ConnectionModel.in(scope, postgres)
    .where({ status: 'published' })
    .whereNot('secret', '')
    .distinct('provider_type')
    .orderBy('provider_type');
  return connections.map(({ provider_type }) => provider_type);
}
