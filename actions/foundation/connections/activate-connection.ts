/**
 * Makes a connection active after its provider accepted its credentials, and enqueues the records that became pending
 * while it was stopped.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import { isBeingArchived } from '../../../core/platform/connection/record.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { addPushJob } from '../../../storage/queue/pending-pushes.ts';
import type { ChangeAuthor } from '../emit.ts';

const ACTIVE = { connection_state: 'active', attention_reason: null, paused_until: null, pause_count: 0 } as const;

/**
 * Makes the connection active, which the caller has locked. Throws if it is being archived, because its mappings are
 * already dropped.
 */
export async function activateConnection(
  transaction: Transaction,
  connection: ConnectionModel,
  { changes, by }: { changes: Partial<ConnectionModel>; by: ChangeAuthor },
): Promise<ConnectionModel> {
  if (isBeingArchived(connection))
    throw notAllowed('this connection is being archived: archive it again, and then create another');
  const changed = await ConnectionModel.change(connection, { ...changes, ...ACTIVE }, { by, database: transaction });
  if (changed.has_account) await addPushJob(transaction, changed);
  return changed;
}
