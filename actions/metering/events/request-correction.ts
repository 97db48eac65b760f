/**
 * Requests the void or the replacement of an accepted event. The request is stored with user, time and reason. It goes through the log to
 * the partition of the id, so that it applies once and in order (actions/metering/events/correct-events.ts). An event in flight is
 * corrected after it is processed. A final invoice is not changed: a later invoice adjusts the difference.
 */
import { FarthingError, notAllowed, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toPartition } from '../../../core/metering/event/identity.ts';
import { loadAcceptedEvent } from '../../../storage/events/corrections.ts';
import { findUnprocessed } from '../../../storage/events/unprocessed.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { ensureCorrectionNumbers } from '../../../storage/progress/attempts.ts';
import {
  addCorrection,
  type Correction,
  computeEventShard,
  listCorrections,
  lockEvent,
} from '../../../storage/progress/corrections.ts';
import { readProgress } from '../../../storage/progress/slices.ts';

type RequestCorrectionInput = {
  readonly event_id: string;
  readonly action: Correction['action'];
  /** JSON text of the corrected event; null for a void. */
  readonly replacement: string | null;
  readonly reason: string;
  readonly user_id: string;
  readonly now: Date;
};

/** Number of checks for an event that may still be in the log: a Kafka log cannot be searched, so each check waits for the stores. */
const ATTEMPTS_MAX = 100;
const PAUSE_MS = 50;

export async function requestCorrection(
  stores: Stores,
  scope: Scope,
  input: RequestCorrectionInput,
): Promise<Correction> {
  const { event_id, action, replacement, reason, user_id: requested_by, now: requested_at } = input;
  await checkAccepted(stores, scope, event_id);
  await ensureCorrectionNumbers(stores);
  return stores.postgres.transaction(async (transaction) => {
    await lockEvent(transaction, scope, event_id);
    const known = await listCorrections(transaction, scope, event_id);
    const repeated = findRepeatedVoid(known, { event_id, action });
    if (repeated) return repeated;
    return addCorrection(transaction, scope, { event_id, action, replacement, reason, requested_by, requested_at });
  });
}

/** Returns the void of an event that is to be voided again, which changes nothing. Refuses to replace a voided event. */
export function findRepeatedVoid(
  known: readonly Correction[],
  { event_id, action }: Pick<RequestCorrectionInput, 'event_id' | 'action'>,
): Correction | null {
  const last = known.filter(({ state }) => state !== 'unknown_event').at(-1);
  if (last?.action !== 'void') return null;
  if (action === 'void') return last;
  throw notAllowed(`event ${event_id} is voided and cannot be replaced`, { id: event_id });
}

/** Refuses an id that no event in the stores, or in the unprocessed part of the log, has. */
export async function checkAccepted(stores: Stores, scope: Scope, event_id: string): Promise<void> {
  if (!(await isAccepted(stores, scope, event_id))) throw notFound('event', event_id);
}

async function isAccepted(stores: Stores, scope: Scope, eventId: string): Promise<boolean> {
  const partition = toPartition(computeEventShard(scope, eventId), stores.log.partition_count);
  const lag = await stores.log.lag();
  const end = lag.find((some) => some.partition === partition)?.end_offset ?? 0n;
  for (let attempts = 1; ; attempts++) {
    const progress = await readProgress(stores.postgres);
    const reached = progress.find((state) => state.partition === partition)?.next_offset ?? 0n;
    if (await loadAcceptedEvent(stores.clickhouse, scope, eventId)) return true;
    if (await findUnprocessed(stores, scope, eventId)) return true;
    // Everything that was in the log at the time of the request is in the stores now, so the event does not exist.
    if (reached >= end) return false;
    if (attempts === ATTEMPTS_MAX)
      throw new FarthingError(
        'service_unavailable',
        'the event is not in the stores, and the log is behind: try again',
      );
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
