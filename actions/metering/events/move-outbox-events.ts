/**
 * Moves events of the outbox to the log that a crash or a failure of the log has left (storage/progress/event-outbox.ts). A repeated move
 * appends events whose ids are known.
 */
import type { Stores } from '../../../storage/foundation/stores.ts';
import {
  hasOutboxEvents,
  type OutboxEvents,
  removeOutboxEvents,
  takeOutboxEvents,
} from '../../../storage/progress/event-outbox.ts';
import { appendEvents, toOneBody } from './append-events.ts';

const ENTRIES_PER_ROUND = 10;

type OutboxStores = Pick<Stores, 'postgres' | 'log'>;

/** Returns the number of moved entries. */
export async function moveOutboxEvents({ postgres, log }: OutboxStores): Promise<number> {
  if (!(await hasOutboxEvents(postgres))) return 0;
  return postgres.transaction(async (transaction) => {
    const entries = await takeOutboxEvents(transaction, ENTRIES_PER_ROUND);
    for (const entry of entries) {
      await appendOutboxEvents(log, entry);
      await removeOutboxEvents(transaction, entry, [entry.id]);
    }
    return entries.length;
  });
}

export async function appendOutboxEvents(log: Stores['log'], entry: Omit<OutboxEvents, 'id'>): Promise<void> {
  const { tenant_id, environment_id, received_at, event_ids, events } = entry;
  const each = events.map((text, index) => ({ bytes: Buffer.from(text), event_id: event_ids[index] }));
  await appendEvents(log, { tenant_id, environment_id }, { ...toOneBody(each), now: new Date(received_at) });
}
