/**
 * What the scheduler looks for across all tenants when it makes deliveries of events: those of which none were made yet, and
 * the endpoints that want them. The events are locked until the transaction ends.
 */
import type { Scope } from '../../core/scope.ts';
import type { SystemEventModel } from '../models/system-event.ts';
import type { Transaction } from '../stores.ts';

export type UndispatchedEvent = Scope &
  Pick<SystemEventModel, 'id' | 'event_name' | 'entity_type' | 'entity_id' | 'created_at'> & {
    sequence: string;
    /** Its instant is that of the clock of its environment, and says nothing about when it is told. */
    has_clock?: boolean;
  };

/** In the order in which they happened. */
export async function takeUndispatched(transaction: Transaction, limit: number): Promise<UndispatchedEvent[]> {
  return transaction('system_events')
    .whereNull('dispatched_at')
    .orderBy('sequence')
    .limit(limit)
    .forUpdate()
    .skipLocked()
    .select('id', 'sequence', 'tenant_id', 'environment_id', 'event_name', 'entity_type', 'entity_id', 'created_at')
    .select(
      transaction.raw(
        `exists (select from test_clocks as clock where clock.tenant_id = system_events.tenant_id
           and clock.environment_id = system_events.environment_id) as has_clock`,
      ),
    );
}

export async function markDispatched(transaction: Transaction, ids: readonly string[], now: Date): Promise<void> {
  await transaction('system_events')
    .whereRaw('id = any(?)', [[...ids]])
    .update({ dispatched_at: now });
}

export type ListeningEndpoint = Scope & { readonly id: string; readonly event_names: readonly string[] };

/** The enabled endpoints of these environments; none of them is deleted or disabled until the transaction ends. */
export async function listeningEndpoints(
  transaction: Transaction,
  scopes: readonly Scope[],
): Promise<ListeningEndpoint[]> {
  return transaction('webhook_endpoints')
    .whereRaw('tenant_id = any(?)', [scopes.map(({ tenant_id }) => tenant_id)])
    .whereRaw('environment_id = any(?)', [scopes.map(({ environment_id }) => environment_id)])
    .where({ status: 'published', endpoint_status: 'enabled' })
    .orderBy('id')
    .forShare()
    .select('id', 'tenant_id', 'environment_id', 'event_names');
}
