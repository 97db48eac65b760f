/** Each connection of an environment: the records that its provider can exchange, those that it does exchange, and its capabilities. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import { EXCHANGES } from '../../../integrations/provider.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { deriveBaseConfig } from '../connections/base-config.ts';

export const CAPABILITY_NAMES = EXCHANGES;

export async function listIntegrationConfig({ postgres }: Postgres, scope: Scope) {
  const connections = await ConnectionModel.in(scope, postgres).where({ status: 'published' }).orderBy('id');
  return connections.map((connection) => {
    return {
      provider: connection.provider_type,
      connection_id: connection.id,
      base_config: deriveBaseConfig(connection),
      current_config: connection.sync_config,
      capabilities: listCapable('account')[connection.provider_type]?.exchanges ?? [],
    };
  });
}
