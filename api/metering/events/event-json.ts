/** An event in answers: its properties are sent as their original text, so that numbers keep their digits. */
import { z } from 'zod';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatUs } from '../../../core/foundation/time/instant.ts';
import type { FoundEvent } from '../../../storage/events/find-events.ts';

export const EventAnswer = z
  .object({
    id: z.string().meta({ description: 'Id of the event, sent or generated.' }),
    external_customer_id: z.string().meta({ description: 'External id of the customer.' }),
    customer_id: z.string().meta({ description: 'Customer id as sent; empty without one.' }),
    event_name: z.string(),
    timestamp: z.string().meta({ description: 'Time of the event, to the microsecond.' }),
    properties: z
      .record(z.string(), z.unknown())
      .meta({ description: 'Properties as sent; numbers keep their digits.' }),
    source: z.string().meta({ description: 'Source as sent; empty without one.' }),
    environment_id: z.string(),
    received_at: z.string().meta({ description: 'Time of receipt.' }),
  })
  .meta({ id: 'Event' });

type ShownEvent = Pick<
  FoundEvent,
  | 'event_id'
  | 'external_customer_id'
  | 'customer_id'
  | 'event_name'
  | 'timestamp_us'
  | 'received_at_us'
  | 'source'
  | 'properties'
>;

export function formatEventJson(event: ShownEvent, { environment_id }: Scope): string {
  const rest = {
    id: event.event_id,
    external_customer_id: event.external_customer_id,
    customer_id: event.customer_id,
    event_name: event.event_name,
    timestamp: formatUs(event.timestamp_us),
    source: event.source,
    environment_id,
    received_at: formatUs(event.received_at_us),
  };
  return `{"properties":${event.properties},${JSON.stringify(rest).slice(1)}`;
}
