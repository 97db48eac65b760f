/** Input of the jobs that push to and read from a connection, and their common treatment of a failing provider. */
import { FarthingError } from '../../../core/foundation/error.ts';
import { computePauseSeconds } from '../../../core/platform/integration/pushed-events.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import { isUnavailable } from '../../../storage/foundation/failure.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import type { AccountCallSettings } from './call-account.ts';

export type ConnectionRun = {
  readonly connection_id: string;
  readonly settings: AccountCallSettings;
  readonly clock: () => Date;
  /** Resolves to false if jobs of other connections wait for this slot. */
  readonly mayGoOn: () => Promise<boolean>;
};

export async function pauseConnection(
  { postgres }: Postgres,
  connection: ConnectionModel,
  { error, now }: { error: ProviderError; now: Date },
): Promise<void> {
  const seconds = computePauseSeconds(connection.pause_count, error.retry_after_seconds);
  const { id, tenant_id, environment_id, pause_count } = connection;
  await postgres('connections')
    .where({ id, tenant_id, environment_id })
    .update({ paused_until: new Date(now.getTime() + seconds * 1_000), pause_count: pause_count + 1 });
}

export async function endPause(
  { postgres }: Postgres,
  { id, tenant_id, environment_id, pause_count }: ConnectionModel,
): Promise<void> {
  if (pause_count === 0) return;
  await postgres('connections').where({ id, tenant_id, environment_id }).update({ paused_until: null, pause_count: 0 });
}

/**
 * Returns the message of a refusal by the provider or by a check. Any other error, such as an unavailable store, is thrown, and the job is
 * retried.
 */
export function describeRefusal(error: unknown): string {
  const isRefusal = error instanceof ProviderError || (error instanceof FarthingError && !isUnavailable(error));
  if (!isRefusal) throw error;
  return error.message;
}
