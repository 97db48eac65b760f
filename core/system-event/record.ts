/**
 * A system event: that a record was changed, kept with the change itself (docs/rules/webhooks.md, "Told with the change").
 * Its payload is the body of the webhook, frozen at that moment.
 */
import { z } from 'zod';
import { baseFields, timestampText } from '../record.ts';
import { parseEventName, SYSTEM_EVENT_NAMES } from './catalogue.ts';

/** A name of the catalogue in any case, or one that others have for it. */
export const systemEventName = z.preprocess(
  (said) => (typeof said === 'string' ? parseEventName(said) : said),
  z.enum(SYSTEM_EVENT_NAMES),
);

export const systemEventShape = z.object({
  id: z.string(),
  event_name: z.string().meta({ description: 'What happened, such as customer.created.' }),
  entity_type: z.string().meta({ description: 'The kind of record to which it happened, such as customer.' }),
  entity_id: z.string().meta({ description: 'The id of that record.' }),
  user_id: z.string().meta({ description: 'On whose behalf; empty where the clock alone did it.' }),
  payload: z
    .record(z.string(), z.unknown())
    .meta({ description: 'The body that webhooks carry: the record as it was right after the change.' }),
  dispatched_at: timestampText
    .nullable()
    .meta({ description: 'When its deliveries were made, one for each endpoint that wants it; null before.' }),
  ...baseFields,
});
export type SystemEvent = z.output<typeof systemEventShape>;
