/**
 * Pushes the pending records of one connection, one after another, the longest waiting first
 * (docs/integrations/README.md, "Sending by itself"). A failed provider pauses the connection; refused credentials stop
 * it; a refused record waits for a person.
 */

import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import {
  continuePushJob,
  delayPushJob,
  endPending,
  findFirstPending,
  movePendingBack,
} from '../../../storage/queue/pending-pushes.ts';
import type { AccountCallSettings } from '../../foundation/connections/call-account.ts';
import {
  type ConnectionRun,
  describeRefusal,
  endPause,
  pauseConnection,
} from '../../foundation/connections/connection-runs.ts';
import { dropMapping, hasCallBegun } from '../../foundation/connections/mappings.ts';
import { NothingToSend } from '../../foundation/connections/push-record.ts';
import { emit } from '../../foundation/emit.ts';
import { isPushed, pushEntity } from './push-entity.ts';

/**
 * How the run ended. `stopped` means that a person has to act first; after `paused` and `continued` another job pushes
 * the rest.
 */
type PushResult = { readonly ended: 'done' | 'stopped' | 'paused' | 'continued'; readonly sent: number };

/** Pause of a record that another attempt sends, or whose state at the provider is not known yet. */
const RECORD_PAUSE_MS = 60_000;

export async function pushPending(
  { postgres }: Postgres,
  scope: Scope,
  { connection_id, settings, clock, mayGoOn }: ConnectionRun,
): Promise<PushResult> {
  let sent = 0;
  /** Records that wait for themselves alone. They are last in the queue, so the first one of them is reached after all others. */
  const waiting = new Set<string>();
  for (;;) {
    const connection = await ConnectionModel.fetch(scope, connection_id, { database: postgres });
    if (connection.status !== 'published' || connection.connection_state !== 'active')
      return { ended: 'stopped', sent };
    const pause_ms = connection.paused_until ? toInstant(connection.paused_until) - clock().getTime() : 0;
    if (pause_ms > 0) {
      await postgres.transaction((transaction) => delayPushJob(transaction, connection, pause_ms));
      return { ended: 'paused', sent };
    }
    const mapping = await findFirstPending(postgres, scope, connection_id);
    if (!mapping) return { ended: 'done', sent };
    if (waiting.has(mapping.id)) {
      await postgres.transaction((transaction) => delayPushJob(transaction, connection, RECORD_PAUSE_MS));
      return { ended: 'paused', sent };
    }
    if (!(await mayGoOn())) {
      await postgres.transaction((transaction) => continuePushJob(transaction, connection));
      return { ended: 'continued', sent };
    }
    try {
      await sendRecord({ postgres }, connection, { mapping, settings, now: clock() });
      await endPending(postgres, mapping, null);
      await endPause({ postgres }, connection);
      sent++;
    } catch (error) {
      if (error instanceof ProviderError && error.error_class === 'wait' && error.is_of_record) {
        waiting.add(mapping.id);
        await movePendingBack(postgres, mapping);
      } else if (error instanceof ProviderError && error.error_class === 'wait') {
        await pauseConnection({ postgres }, connection, { error, now: clock() });
        await movePendingBack(postgres, mapping);
      } else if (error instanceof ProviderError && error.is_unauthorized) return { ended: 'stopped', sent };
      else {
        await recordRefusal({ postgres }, mapping, { error, now: clock() });
        await endPause({ postgres }, connection);
      }
    }
  }
}

type SendInput = {
  readonly mapping: IntegrationMappingModel;
  readonly settings: AccountCallSettings;
  readonly now: Date;
};

async function sendRecord(
  stores: Postgres,
  connection: ConnectionModel,
  { mapping, settings, now }: SendInput,
): Promise<void> {
  const { entity_id, entity_type } = mapping;
  const author = { user_id: '', now };
  if (!isPushed(entity_type)) throw new FarthingError('system_error', `a ${entity_type} is not sent to providers`);
  try {
    await pushEntity(stores, mapping, { connection, entity_type, entity_id, settings, author });
  } catch (error) {
    if (!(error instanceof NothingToSend) || !(await dropUnsent(stores, mapping, author))) throw error;
  }
}

/** Drops the mapping if no call was made with it. Returns whether it was dropped. */
function dropUnsent({ postgres }: Postgres, mapping: IntegrationMappingModel, author: Author): Promise<boolean> {
  return postgres.transaction(async (transaction) => {
    const current = await IntegrationMappingModel.fetch(mapping, mapping.id, { database: transaction, lock: true });
    if (hasCallBegun(current)) return false;
    await dropMapping(transaction, current, author);
    return true;
  });
}

/** Stores the refusal, unless the mapping was unlinked meanwhile. */
async function recordRefusal(
  { postgres }: Postgres,
  mapping: IntegrationMappingModel,
  { error, now }: { error: unknown; now: Date },
): Promise<void> {
  const push_error = describeRefusal(error);
  await postgres.transaction(async (transaction) => {
    await endPending(transaction, mapping, push_error);
    const record = await IntegrationMappingModel.fetch(mapping, mapping.id, { database: transaction });
    if (record.mapping_state !== 'gone') await emit(transaction, 'integration_mapping.failed', { record, by: { now } });
  });
}
