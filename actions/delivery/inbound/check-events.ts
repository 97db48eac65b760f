/**
 * Limits of the events in one webhook. The owner of a connection knows its secret and can sign any content: more ids would occupy a read
 * job for hours, and Postgres cannot index texts of any length.
 */
import { invalid } from '../../../core/foundation/error.ts';
import type { InboundEvent } from '../../../integrations/account.ts';

/** Maximum number of events. One statement stores them, and Postgres limits its parameters. */
const EVENTS_MAX = 1_000;
/** Maximum number of records that the events name in all. */
const SUBJECTS_MAX = 5_000;
const TEXT_MAX = 255;

export function checkEvents(events: readonly InboundEvent[]): void {
  if (events.length > EVENTS_MAX) throw invalid('body', `has ${events.length} events; the maximum is ${EVENTS_MAX}`);
  const subjects = events.flatMap((event) => event.subjects);
  if (subjects.length > SUBJECTS_MAX)
    throw invalid('body', `names ${subjects.length} records; the maximum is ${SUBJECTS_MAX}`);
  const texts = [
    ...events.flatMap(({ provider_event_id, event_type }) => [provider_event_id, event_type]),
    ...subjects.map(({ provider_entity_id }) => provider_entity_id),
  ];
  if (texts.some((text) => text.length > TEXT_MAX))
    throw invalid('body', `has an id of more than ${TEXT_MAX} characters`);
}
