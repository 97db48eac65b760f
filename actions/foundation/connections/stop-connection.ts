/** Stops the calls of a connection until somebody acts: its credentials are refused, or its requests fail for good. */
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { type ChangeAuthor, emit } from '../emit.ts';

/**
 * Stops the connection and emits a system event. A connection that is stopped already retains its first reason and
 * emits nothing.
 */
export async function stopConnection(
  { postgres }: Postgres,
  connection: Pick<ConnectionModel, 'id' | 'tenant_id' | 'environment_id' | 'secret' | 'oauth_tokens'>,
  { reason, by }: { reason: string; by: ChangeAuthor },
): Promise<void> {
  await postgres.transaction(async (database) => {
    const current = await ConnectionModel.fetch(connection, connection.id, { database, lock: true });
    if (current.status !== 'published' || current.connection_state !== 'active') return;
    // The credentials were replaced while the failed call was running, so its failure says nothing about the new ones.
    if (current.secret !== connection.secret || current.oauth_tokens !== connection.oauth_tokens) return;
    const changes = { connection_state: 'needs_attention', attention_reason: reason } as const;
    const record = await ConnectionModel.change(current, changes, { by, database });
    await emit(database, 'connection.needs_attention', { record, by });
  });
}
