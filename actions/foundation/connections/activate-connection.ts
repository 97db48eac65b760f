/**
 * Makes a connection active after its provider accepted its credentials, and enqueues the records that became pending
 * while it was stopped.
 */

import type { Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { addPushJob } from '../../../storage/queue/pending-pushes.ts';
import type { ChangeAuthor } from '../emit.ts';

const ACTIVE = { connection_state: 'active', attention_reason: null, paused_until: null, pause_count: 0 } as const;

/** The caller has locked the connection. */
export async function activateConnection(
  transaction: Transaction,
  connection: ConnectionModel,
  { changes, by }: { changes: Partial<ConnectionModel>; by: ChangeAuthor },
): Promise<ConnectionModel> {
  const changed = await ConnectionModel.change(connection, { ...changes, ...ACTIVE }, { by, database: transaction });
  if (changed.has_account) await addPushJob(transaction, changed);
  return changed;
}
