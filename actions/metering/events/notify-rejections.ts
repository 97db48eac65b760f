/** Emits `event.rejected` for the events since an instant that were not counted for one reason (docs/rules/webhooks.md, "Rejected events"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatUs, type Microseconds } from '../../../core/foundation/time/instant.ts';
import type { UncountedReason } from '../../../core/metering/event/uncounted.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { emit } from '../../foundation/emit.ts';
import { listUncountedEvents, showUncountedEvent } from './list-uncounted-events.ts';

const EVENTS_MAX = 10;

export async function notifyRejections(
  stores: Stores,
  scope: Scope,
  { reason, since_us, now }: { reason: UncountedReason; since_us: Microseconds; now: Date },
): Promise<void> {
  const { events, next } = await listUncountedEvents(stores, scope, {
    reasons: [reason],
    event_name: null,
    external_customer_id: null,
    start_us: since_us,
    end_us: null,
    after: null,
    limit: EVENTS_MAX,
  });
  // Since then a meter was created, or the events were replayed.
  if (events.length === 0) return;
  const { tenant_id, environment_id } = scope;
  const record = {
    ...{ tenant_id, environment_id, id: environment_id },
    reason,
    since: formatUs(since_us),
    events: events.map(showUncountedEvent),
    has_more: next !== null,
  };
  await stores.postgres.transaction((transaction) => emit(transaction, 'event.rejected', { record, by: { now } }));
}
