/**
 * Plans a correction of an event for its preview, without requesting it. It is refused for the same reasons as the request
 * (request-correction.ts).
 */
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { properties as propertiesIn } from '../../../core/metering/event-text.ts';
import type { CorrectedEvent, PlannedCorrection } from '../../../core/metering/planned-correction.ts';
import { type EventContent, loadHistories } from '../../../storage/events/corrections.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { type Correction, listCorrections } from '../../../storage/progress/corrections.ts';
import { buildReplacement } from './correct-events.ts';
import { checkAccepted, findRepeatedVoid } from './request-correction.ts';

export type PlanCorrectionInput = Pick<Correction, 'event_id' | 'action' | 'replacement'>;

export async function planCorrection(
  stores: Stores,
  scope: Scope,
  { event_id, action, replacement }: PlanCorrectionInput,
): Promise<PlannedCorrection> {
  await checkAccepted(stores, scope, event_id);
  const known = await listCorrections(stores.postgres, scope, event_id);
  findRepeatedVoid(known, { event_id, action });
  const history = (await loadHistories(stores.clickhouse, scope, [event_id])).get(event_id);
  // The effect of a second correction is known only after the first one is counted.
  if (!history || known.some(({ state }) => state === 'requested')) throw toProcessingError(event_id);
  const { original, corrections } = history;
  const last = corrections.at(-1);
  const { event_partition: partition, event_offset: offset } = original;
  const toEvent = (content: EventContent) => toCorrectedEvent(event_id, content);
  return {
    ...scope,
    event_id,
    before: last?.action === 'void' ? null : toEvent(last ?? original),
    after: action === 'void' ? null : toEvent(buildReplacement({ replacement }, last ?? original)),
    log_position: { partition, offset },
    correction_count: known.length,
  };
}

/** Refuses a preview if another correction of the event was requested since its plan: usage may have changed between two reads. */
export async function checkUncorrectedSince(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { event_id, correction_count }: Pick<PlannedCorrection, 'event_id' | 'correction_count'>,
): Promise<void> {
  const known = await listCorrections(postgres, scope, event_id);
  if (known.length !== correction_count) throw toProcessingError(event_id);
}

function toProcessingError(event_id: string): FarthingError {
  return new FarthingError('service_unavailable', `event ${event_id} is still being processed: try again`);
}

function toCorrectedEvent(event_id: string, { properties: text, ...content }: EventContent): CorrectedEvent {
  const { event_name, external_customer_id, timestamp_us, source } = content;
  const { length } = text;
  return { event_id, event_name, external_customer_id, timestamp_us, source, properties: propertiesIn(text), length };
}
