/** Credentials of connections. They are stored encrypted, as JSON with one entry per provider type. */
import type { ProviderSecrets } from '../../../core/platform/connection/record.ts';
import type { SecretOwner, SecretSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';

type StoredConnection = SecretOwner & Pick<ConnectionModel, 'provider_type' | 'secret'>;

/** Decrypts the credentials; null if there are none. Throws if the stored text cannot be decrypted. */
export function openConnectionSecrets(connection: StoredConnection, sealing: SecretSealer): ProviderSecrets | null {
  if (connection.secret === '') return null;
  const by_provider = JSON.parse(sealing.open(connection.secret, connection)) as Record<string, ProviderSecrets | null>;
  return by_provider[connection.provider_type] ?? null;
}

export function sealConnectionSecrets(
  secrets: ProviderSecrets | null,
  connection: Omit<StoredConnection, 'secret'>,
  sealing: SecretSealer,
): string {
  return secrets === null ? '' : sealing.seal(JSON.stringify({ [connection.provider_type]: secrets }), connection);
}
