/** Published connections of an environment to accounts at providers. */
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { isBeingArchived } from '../../../core/platform/connection/record.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';

export async function listAccountConnections(scope: Scope, database: Database): Promise<ConnectionModel[]> {
  return await buildListQuery(scope, database);
}

/** Lists the connections and locks their rows, so that no concurrent request adds a mapping to one of them or archives it. */
export async function lockAccountConnections(scope: Scope, transaction: Transaction): Promise<ConnectionModel[]> {
  return await buildListQuery(scope, transaction).forUpdate();
}

/**
 * Whether the environment has a connection to the provider that is not being archived. The connection stays locked
 * until the transaction ends, so its archival waits and then finds the payments and refunds that the transaction
 * requests.
 */
export async function lockConnectionTo(
  scope: Scope,
  provider_type: string,
  transaction: Transaction,
): Promise<boolean> {
  const locked = await buildListQuery(scope, transaction).whereRaw('provider_type = ?', [provider_type]).forKeyShare();
  return locked.some((connection) => !isBeingArchived(connection));
}

function buildListQuery(scope: Scope, database: Database) {
  return ConnectionModel.in(scope, database).where({ has_account: true, status: 'published' }).orderBy('id');
}

/** The connection to a provider that a request names in `field`. */
export async function findAccountConnection(
  scope: Scope,
  { provider_type, field }: { provider_type: string; field: string },
  database: Database,
): Promise<ConnectionModel> {
  const connections = await listAccountConnections(scope, database);
  const found = connections.find((connection) => connection.provider_type === provider_type.toLowerCase());
  if (found) return found;
  const allowed = connections.map((connection) => connection.provider_type);
  throw invalid(field, `this environment has no connection to ${provider_type}`, { allowed });
}
