/** Processes an inbound event again, on request. */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ProviderEventModel } from '../../../storage/models/delivery/provider-event.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { addReadJob } from '../../../storage/queue/provider-events.ts';

/** Queues an event of a provider to be processed again. Refuses a processed event: later changes arrive with later events or a pull. */
export async function retryProviderEvent(
  { postgres }: Postgres,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<ProviderEventModel> {
  return postgres.transaction(async (transaction) => {
    const event = await ProviderEventModel.fetch(scope, id, { database: transaction, lock: true });
    if (event.event_state === 'processed') throw notAllowed('the event was processed already');
    if (event.subjects.length === 0) throw notAllowed('events of this type have no effect');
    const connection = await ConnectionModel.fetchPublished(scope, event.connection_id, { database: transaction });
    const due = { next_attempt_at: author.now.toISOString(), attempt_count: 0, processed_at: null };
    const changes = { ...due, event_state: 'received' as const };
    const changed = await ProviderEventModel.change(event, changes, { by: author, database: transaction });
    await addReadJob(transaction, connection);
    return changed;
  });
}
