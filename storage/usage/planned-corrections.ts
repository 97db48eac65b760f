/** Applies the correction of a preview (`Stores.planned_correction`) to usage queries that read its event. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { correctEvents, isTouched, type PlannedCorrection } from '../../core/metering/planned-correction.ts';
import type { RawEvent, RawEventsQuery } from '../events/raw-events.ts';
import type { Stores } from '../foundation/stores.ts';
import { type CountedUntil, isInQuery, type LoggedEvent } from './counted-events.ts';
import type { MeterUsageQuery } from './usage-query.ts';

type CorrectableRead = {
  readonly stores: Pick<Stores, 'planned_correction'>;
  readonly scope: Scope;
  readonly query: Pick<MeterUsageQuery, 'external_customer_ids'>;
  readonly meter: Pick<CompiledMeter, 'event_name'>;
};

/** Finds the planned correction, if the query reads its event. */
export function findTouchingCorrection({ stores, scope, query, meter }: CorrectableRead): PlannedCorrection | null {
  const { planned_correction: correction } = stores;
  const { external_customer_ids } = query;
  const counted = { ...scope, event_name: meter.event_name, external_customer_ids };
  return correction && isTouched(correction, counted) ? correction : null;
}

export function applyPlannedCorrection(
  events: AsyncIterable<RawEvent> | Iterable<RawEvent>,
  read: CorrectableRead,
  { event_name, ranges = [], sources, before }: RawEventsQuery,
): AsyncIterable<RawEvent> | Iterable<RawEvent> {
  const correction = findTouchingCorrection(read);
  if (correction === null) return events;
  const { external_customer_ids } = read.query;
  return correctEvents(events, correction, { event_name, external_customer_ids, ranges, sources, before });
}

/** Events to remove from the usage of a query, and events to add. */
export type EventChange = { readonly removed: readonly LoggedEvent[]; readonly added: readonly LoggedEvent[] };

/** Lists the old and the new content of a corrected event, each only if the query counts it. */
export function listChangedEvents(
  { before, after, log_position }: PlannedCorrection,
  read: CountedUntil & { readonly query: MeterUsageQuery; readonly meter: CompiledMeter },
): EventChange {
  const listCounted = (content: PlannedCorrection['before']) =>
    [content].flatMap((event) => event ?? []).map((event) => ({ ...event, log_position }));
  return {
    removed: listCounted(before).filter((event) => isInQuery(read, event)),
    added: listCounted(after).filter((event) => isInQuery(read, event)),
  };
}
