/** Creates, changes and archives connections; their credentials are stored sealed (docs/rules/exports.md, "Connections"). */

import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import {
  type Connection,
  type ConnectionSecrets,
  checkConnection,
  connectionSecrets,
} from '../../../core/platform/connection/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { SecretSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/reporting/connection.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';

type NewConnection = Pick<Connection, 'name' | 'provider_type' | 'metadata' | 'sync_config'> & {
  readonly encrypted_secret_data: ConnectionSecrets | null;
};
type CreateConnectionInput = { fields: NewConnection; has_directory: boolean; author: Author; sealing: SecretSealer };

export async function createConnection(
  { postgres }: Postgres,
  scope: Scope,
  { fields: { encrypted_secret_data, ...fields }, has_directory, author, sealing }: CreateConnectionInput,
): Promise<ConnectionModel> {
  checkConnection(fields.provider_type, encrypted_secret_data);
  if (fields.provider_type === 'directory' && !has_directory)
    throw invalid('provider_type', 'this service has no directory for exports (EXPORT_DIRECTORY)');
  const id = newId('connection', author.now.getTime());
  const record = { id, ...fields, secret: sealConnectionSecrets(encrypted_secret_data, sealing), ...createdBy(author) };
  return ConnectionModel.add(scope, record, { database: postgres });
}

function sealConnectionSecrets(secrets: ConnectionSecrets | null, sealing: SecretSealer): string {
  return secrets?.s3 ? sealing.seal(JSON.stringify(secrets)) : '';
}

export function openConnectionSecrets(
  { secret }: Pick<ConnectionModel, 'secret'>,
  sealing: SecretSealer,
): ConnectionSecrets {
  return secret === '' ? { s3: null } : connectionSecrets.parse(JSON.parse(sealing.open(secret)));
}

type ConnectionChange = {
  id: string;
  changes: Partial<Omit<NewConnection, 'provider_type'>>;
  author: Author;
  sealing: SecretSealer;
};

export async function changeConnection(
  { postgres }: Postgres,
  scope: Scope,
  { id, changes: { encrypted_secret_data, ...changes }, author, sealing }: ConnectionChange,
): Promise<ConnectionModel> {
  return postgres.transaction(async (database) => {
    const connection = await ConnectionModel.fetchPublished(scope, id, { database, lock: true });
    const secrets = encrypted_secret_data ?? null;
    if (secrets) checkConnection(connection.provider_type, secrets);
    const resealed = secrets ? { secret: sealConnectionSecrets(secrets, sealing) } : {};
    return ConnectionModel.change(connection, { ...changes, ...resealed }, { by: author, database });
  });
}

/** A connection that a scheduled task uses cannot be archived: its next file would have no destination. */
export async function archiveConnection(
  { postgres }: Postgres,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await postgres.transaction(async (database) => {
    const connection = await ConnectionModel.fetchPublished(scope, id, { database, lock: true });
    const [used] = await ScheduledTaskModel.in(scope, database)
      .where({ connection_id: id, status: 'published' })
      .select('id')
      .limit(1);
    if (used) throw notAllowed(`the scheduled task ${used.id} writes to it: archive that first`);
    await ConnectionModel.change(connection, { status: 'archived', secret: '' }, { by: author, database });
  });
}
