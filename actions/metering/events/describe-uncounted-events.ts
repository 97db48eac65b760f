/** The content of stored events that are not counted, and the event name that a misspelled one probably means. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Microseconds } from '../../../core/foundation/time/instant.ts';
import type { UncountedReason } from '../../../core/metering/event/uncounted.ts';
import { mapYielding } from '../../../storage/concurrency/time-slicer.ts';
import { loadHistories } from '../../../storage/events/corrections.ts';
import type { UncountedRow } from '../../../storage/events/uncounted-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { findNearestName } from './nearest-name.ts';

type UncountedDetails = {
  /** Null for input that is not stored as an event. */
  readonly timestamp_us: Microseconds | null;
  /** JSON text of the object. */
  readonly properties: string | null;
  readonly nearest_event_name: string | null;
};

/** Returns the details of each event, in their order. */
export async function describeUncountedEvents(
  { clickhouse, postgres }: Stores,
  scope: Scope,
  events: readonly (UncountedRow & { readonly reason: UncountedReason })[],
): Promise<UncountedDetails[]> {
  const isStored = ({ reason }: { readonly reason: UncountedReason }) =>
    reason === 'unusable' || reason === 'unmatched';
  const ids = [...new Set(events.filter(isStored).map(({ event_id }) => event_id))];
  const isUnmatched = events.some(({ reason }) => reason === 'unmatched');
  const [histories, meters] = await Promise.all([
    ids.length === 0 ? null : loadHistories(clickhouse, scope, ids),
    isUnmatched ? MeterModel.in(scope, postgres).where({ status: 'published' }) : [],
  ]);
  const names = new Set(meters.map(({ event_name }) => event_name));
  // Many events have one misspelled name.
  const nearest = new Map<string, string | null>();
  const findNearest = (name: string) => {
    if (!nearest.has(name)) nearest.set(name, findNearestName(name, names));
    return nearest.get(name)!;
  };
  // Each name is compared with those of all meters.
  return mapYielding(scope.tenant_id, events, (event) => {
    const history = isStored(event) ? histories?.get(event.event_id) : undefined;
    const content = history && (history.corrections.at(-1) ?? history.original);
    return {
      timestamp_us: content?.timestamp_us ?? null,
      properties: content?.properties ?? null,
      nearest_event_name: event.reason === 'unmatched' ? findNearest(event.event_name) : null,
    };
  });
}
