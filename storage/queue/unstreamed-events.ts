/** System events of all tenants that are not on Kafka yet, and old ones that can be deleted. */

import type { Database, Transaction } from '../foundation/stores.ts';
import type { PublishedSystemEvent } from '../log/log.ts';

/**
 * Takes events in the order in which they happened. A concurrent call waits for the locks, which preserves the order.
 */
export async function takeUnstreamed(transaction: Transaction, limit: number): Promise<PublishedSystemEvent[]> {
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
 * Deletes events older than the given instant, with their deliveries and attempts. Events that wait for a delivery
 * remain, as do those that wait for Kafka if streaming is on. In an environment with a test clock the age is by the
 * machine's clock. Returns the number of deleted events.
 */
export async function purgePublishedBefore(
  database: Database,
  { before, is_streamed }: { before: Date; is_streamed: boolean },
): Promise<number> {
  const isOver = `dispatched_at is not null and (streamed_at is not null or not :is_streamed::boolean)
    and not exists (select from webhook_deliveries as delivery
                     where delivery.system_event_id = event.id and delivery.delivery_status = 'pending')`;
  const isSameEnvironment = 'clock.tenant_id = event.tenant_id and clock.environment_id = event.environment_id';
  const { rowCount } = await database.raw(
    `delete from system_events as event where event.created_at < :before and ${isOver}
        and not exists (select from test_clocks as clock where ${isSameEnvironment})`,
    { before, is_streamed },
  );
  const { rowCount: ofClocks } = await database.raw(
    `delete from system_events as event using test_clocks as clock
      where ${isSameEnvironment} and event.dispatched_at < :before and ${isOver}`,
    { before, is_streamed },
  );
  return rowCount + ofClocks;
}
