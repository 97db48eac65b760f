/**
 * Moves events of the outbox to the log that a crash or a failure of the log has left (storage/progress/event-outbox.ts). A repeated move
 * appends events whose ids are known.
 */
import type { Logger } from 'pino';
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import {
  failOutboxEvents,
  hasOutboxEvents,
  type OutboxEvents,
  removeOutboxEvents,
  takeOldestOutboxEvents,
} from '../../../storage/progress/event-outbox.ts';
import { appendEvents, toOneBody } from './append-events.ts';

const ENTRIES_PER_ROUND = 10;

type OutboxStores = Pick<Stores, 'postgres' | 'log'>;

/** Returns the number of entries that were moved or set aside. */
export async function moveOutboxEvents(stores: OutboxStores, logger: Logger): Promise<number> {
  if (!(await hasOutboxEvents(stores.postgres))) return 0;
  let moved = 0;
  while (moved < ENTRIES_PER_ROUND && (await moveOldestEntry(stores, logger))) moved++;
  return moved;
}

/** Moves one entry in a transaction of its own, so that a failure affects no other. Returns false if there is none. */
function moveOldestEntry({ postgres, log }: OutboxStores, logger: Logger): Promise<boolean> {
  return postgres.transaction(async (transaction) => {
    const entry = await takeOldestOutboxEvents(transaction);
    if (!entry) return false;
    try {
      await appendOutboxEvents(log, entry);
    } catch (error) {
      // Any other failure is temporary, and the entry is moved later.
      if (!(error instanceof FarthingError) || error.code !== 'validation_error') throw error;
      const { id, tenant_id, environment_id } = entry;
      logger.error(
        { err: error, id, tenant_id, environment_id },
        'the log refuses events of the outbox: they do not count (docs/operations.md, Refused events of the outbox)',
      );
      await failOutboxEvents(transaction, entry);
      return true;
    }
    await removeOutboxEvents(transaction, entry, [entry.id]);
    return true;
  });
}

export async function appendOutboxEvents(log: Stores['log'], entry: Omit<OutboxEvents, 'id'>): Promise<void> {
  const { tenant_id, environment_id, received_at, event_ids, events } = entry;
  const each = events.map((text, index) => ({ bytes: Buffer.from(text), event_id: event_ids[index] }));
  await appendEvents(log, { tenant_id, environment_id }, { ...toOneBody(each), now: new Date(received_at) });
}
