/**
 * A system event records a change of a record, in the transaction of the change (docs/rules/webhooks.md, "Emitted with the change"). Its
 * payload is the body of the webhook at that moment.
 */
import { z } from 'zod';
import { baseFields, timestampText } from '../../foundation/record.ts';
import { parseEventName, SYSTEM_EVENT_NAMES } from './catalogue.ts';

/** Name of a system event in the catalogue, case-insensitive, or an alias of such a name. */
export const systemEventName = z.preprocess(
  (name) => (typeof name === 'string' ? parseEventName(name) : name),
  z.enum(SYSTEM_EVENT_NAMES),
);

export const systemEventShape = z.object({
  id: z.string(),
  event_name: z.string().meta({ description: 'Name of the event, such as customer.created.' }),
  entity_type: z.string().meta({ description: 'Kind of the changed record, such as customer.' }),
  entity_id: z.string().meta({ description: 'Id of the changed record.' }),
  user_id: z.string().meta({ description: 'User that caused the event; empty if a job of the clock caused it.' }),
  payload: z
    .record(z.string(), z.unknown())
    .meta({ description: 'Body of the webhook: the record right after the change.' }),
  dispatched_at: timestampText
    .nullable()
    .meta({ description: 'Time at which the deliveries were created, one per subscribed endpoint; null before.' }),
  ...baseFields,
});
export type SystemEvent = z.output<typeof systemEventShape>;
