/** Finds one event by its id: in the stores, as it counts now, or in the log before it takes effect. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { properties as propertiesIn } from '../../../core/metering/event-text.ts';
import { loadAcceptedEvent, loadLastCorrection } from '../../../storage/events/corrections.ts';
import type { FoundEvent } from '../../../storage/events/find-events.ts';
import type { PositionedRawEvent } from '../../../storage/events/raw-events.ts';
import { findUnprocessed } from '../../../storage/events/unprocessed.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { PartitionProgress } from '../../../storage/progress/partition-progress.ts';
import { loadSharedProgress } from '../../../storage/progress/slices.ts';

export type LocatedEvent = {
  readonly event: FoundEvent;
  readonly in_effect: boolean;
  readonly is_void: boolean;
};

type EventQuery = { readonly id: string; readonly is_corrected: boolean };

/**
 * Searches the stores, the log, and the stores again: a slice with the event may be written to the stores between the first two searches.
 */
export async function findEvent(stores: Stores, scope: Scope, query: EventQuery): Promise<LocatedEvent | undefined> {
  const stored = await loadStoredEvent(stores, scope, query);
  if (stored) return stored;
  const waiting = await findUnprocessed(stores, scope, query.id);
  if (waiting) return { event: waiting, in_effect: false, is_void: false };
  return loadStoredEvent(stores, scope, query);
}

/** Loads the event as it counts now: with the content of its last correction. */
async function loadStoredEvent(
  { clickhouse, postgres }: Stores,
  scope: Scope,
  { id, is_corrected }: EventQuery,
): Promise<LocatedEvent | undefined> {
  const [original, corrected, progress] = await Promise.all([
    loadAcceptedEvent(clickhouse, scope, id),
    is_corrected ? loadLastCorrection(clickhouse, scope, id) : undefined,
    loadSharedProgress(postgres),
  ]);
  if (!original) return undefined;
  const { event_partition: partition, event_offset: offset } = original;
  const event = { ...original, ...corrected, event_id: id, partition, offset };
  return { event, in_effect: isInEffect(event, progress), is_void: corrected?.action === 'void' };
}

/** Whether the slice of the event is processed, so that the pre-aggregated rows include the event. */
function isInEffect({ partition, offset }: FoundEvent, progress: readonly PartitionProgress[]): boolean {
  const state = progress.find((candidate) => candidate.partition === partition);
  return state !== undefined && state.next_offset > BigInt(offset);
}

/** Converts an event to the form that meters measure. Its position within the record of the log is not known, and not needed. */
export function toMeteredEvent({ partition, offset, received_at_us, ...event }: FoundEvent): PositionedRawEvent {
  return {
    ...event,
    properties: propertiesIn(event.properties),
    length: event.properties.length,
    log_position: { received_at_us, partition, offset, position: 0 },
  };
}
