/**
 * An event that can never be written must not block its partition for ever. If available stores reject a slice, its events are tried by
 * halves to find those that are rejected individually. These are dead-lettered with their bytes, and voided in case a part of them was
 * written. If no event is rejected, or all, or more than 100, no event is at fault: the slice waits, and the process logs it.
 */

import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { deleteOtherOutcomes } from '../../storage/events/delete-outcomes.ts';
import { deleteIdentities } from '../../storage/events/identities.ts';
import { findMissingRows } from '../../storage/events/present.ts';
import { bucketRowsTarget, EVENT_IDENTITIES, EVENT_OUTCOMES, EVENTS } from '../../storage/events/tables.ts';
import { Trial } from '../../storage/events/trial.ts';
import { isUnavailable } from '../../storage/foundation/failure.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { ensureCorrectionNumbers } from '../../storage/progress/attempts.ts';
import { addCorrection, listCorrections, lockEvent, PIPELINE } from '../../storage/progress/corrections.ts';
import { type OwnedPartition } from '../../storage/progress/partition-progress.ts';
import { proveOwner } from '../../storage/progress/slices.ts';
import { addStoredRejection, type StoredRejection } from '../../storage/progress/stored-rejections.ts';
import type { MeterCatalogue } from '../control/meter-catalogue.ts';
import { meterEvents } from '../steps/meter-events.ts';
import type { ReadEvent } from '../steps/read-events.ts';
import type { PreparedSlice } from './slice.ts';

type RejectedEvent = StoredRejection & { readonly event: ReadEvent };

/** Maximum number of rejected events in a slice. If there are more, the store or this service is at fault. */
const REJECTED_MAX = 100;

/** Finds the events of a slice that the stores reject individually. Returns none if no event is at fault. */
export async function findRejectedEvents(
  stores: Stores,
  catalogue: MeterCatalogue,
  events: readonly ReadEvent[],
): Promise<RejectedEvent[]> {
  const found: RejectedEvent[] = [];
  const trial = new Trial(stores.clickhouse);
  const search = async (some: readonly ReadEvent[]): Promise<void> => {
    if (some.length === 0 || found.length > REJECTED_MAX) return;
    const reason = await findRejection(trial, catalogue, some);
    if (reason === undefined) return;
    const [event] = some;
    if (some.length === 1) {
      found.push({ event: event!, offset: event!.offset, position: event!.position, reason });
      return;
    }
    const middle = some.length >>> 1;
    await search(some.slice(0, middle));
    await search(some.slice(middle));
  };
  try {
    await search(events);
  } finally {
    await trial.end();
  }
  return found.length > REJECTED_MAX || (found.length > 1 && found.length === events.length) ? [] : found;
}

async function findRejection(
  trial: Trial,
  catalogue: MeterCatalogue,
  events: readonly ReadEvent[],
): Promise<string | undefined> {
  let metered: Awaited<ReturnType<typeof meterEvents>>;
  try {
    metered = await meterEvents(events, (scope) => catalogue.findMeters(scope));
  } catch (error) {
    // If a store is unavailable, it is unknown whether the events are at fault.
    if (isUnavailable(error)) throw error;
    return error instanceof Error ? error.message : String(error);
  }
  return (
    (await trial.findRejection(EVENTS, events)) ??
    (await trial.findRejection(EVENT_IDENTITIES, events)) ??
    (await trial.findRejection(EVENT_OUTCOMES, metered.unusable)) ??
    (await trial.findRejection(
      bucketRowsTarget((meterId) => catalogue.getVersion(meterId)),
      metered.bucket_rows,
    ))
  );
}

/**
 * Makes the event a dead letter; only the owner of the partition may do so. If the raw row of the event is stored, the event is voided;
 * otherwise `deleteRejectedRows` deletes its identity, so that a later event may have the same id.
 */
export async function rejectEvent(
  stores: Stores,
  owned_partition: OwnedPartition,
  { event, ...rejection }: RejectedEvent,
): Promise<void> {
  const { scope, event_id } = event;
  const isWritten = (await findNotStored(stores, [event])).length === 0;
  await ensureCorrectionNumbers(stores);
  await stores.postgres.transaction(async (transaction) => {
    await proveOwner(transaction, owned_partition);
    await addStoredRejection(transaction, owned_partition.partition, rejection);
    if (!isWritten) return;
    await lockEvent(transaction, scope, event_id);
    const known = await listCorrections(transaction, scope, event_id);
    if (known.filter(({ state }) => state !== 'unknown_event').at(-1)?.action === 'void') return;
    await addCorrection(transaction, scope, {
      event_id,
      action: 'void',
      replacement: null,
      reason: 'the stores reject it',
      requested_by: PIPELINE,
      requested_at: new Date(),
    });
  });
}

function findNotStored({ clickhouse }: Stores, rows: readonly ReadEvent[]): Promise<ReadEvent[]> {
  return findMissingRows(clickhouse, { table: EVENTS.table, rows });
}

/**
 * Deletes the rows that attempts before the rejection wrote for the rejected events: their identities, and outcomes that have changed
 * since. The raised fence ensures that no statement of these attempts arrives later.
 */
export async function deleteRejectedRows(stores: Stores, slice: PreparedSlice): Promise<void> {
  await deleteIdentities(stores.clickhouse, await findNotStored(stores, slice.rejected_events));
  const { partition } = slice.records[0]!;
  await deleteOtherOutcomes(stores.clickhouse, { partition, from: slice.from, to: slice.to, outcomes: slice.outcomes });
}

export function buildRejectedOutcome(event: ReadEvent, reason: string): EventOutcome {
  const { tenant_id, environment_id, event_id, received_at_us, partition, offset, position } = event;
  return {
    tenant_id,
    environment_id,
    event_id,
    outcome: 'dead_letter',
    meter_id: '',
    reason: `cannot be written: ${reason.slice(0, 500)}`,
    received_at_us,
    partition,
    offset,
    position,
    body: event.text(),
  };
}
