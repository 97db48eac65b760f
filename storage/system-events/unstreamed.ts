/** System events that were not told on Kafka yet, and those that are old, across all tenants. */
import type { ToldEvent } from '../log/log.ts';
import type { Database, Transaction } from '../stores.ts';

/** In the order in which they happened; whoever else asks waits, so that the order is kept. */
export async function takeUnstreamed(transaction: Transaction, limit: number): Promise<ToldEvent[]> {
  return transaction('system_events')
    .whereNull('streamed_at')
    .orderBy('sequence')
    .limit(limit)
    .forUpdate()
    .select(
      'id',
      'event_name',
      'entity_type',
      'entity_id',
      'tenant_id',
      'environment_id',
      'user_id',
      'payload',
      'created_at as timestamp',
    );
}

export async function markStreamed(transaction: Transaction, ids: readonly string[], now: Date): Promise<void> {
  await transaction('system_events')
    .whereRaw('id = any(?)', [[...ids]])
    .update({ streamed_at: now });
}

/**
 * Takes away what is older, with its deliveries and their tries; not what still waits for a delivery, or for Kafka where that
 * is told. Answers how many.
 */
export async function purgeToldBefore(
  database: Database,
  { before, is_streamed }: { before: Date; is_streamed: boolean },
): Promise<number> {
  const { rowCount } = await database.raw(
    `delete from system_events as event
      where created_at < ? and dispatched_at is not null and (streamed_at is not null or not ?::boolean)
        and not exists (select from webhook_deliveries as delivery
                         where delivery.system_event_id = event.id and delivery.delivery_status = 'pending')`,
    [before, is_streamed],
  );
  return rowCount;
}
