/** Events that are not counted, as lists and webhooks show them (docs/rules/events.md, "Events that count nowhere"). */
import { z } from 'zod';
import { timestampText } from '../../foundation/record.ts';

export const UNCOUNTED_REASONS = ['dead_letter', 'conflict', 'unusable', 'unmatched'] as const;
export type UncountedReason = (typeof UNCOUNTED_REASONS)[number];

const reason = z.enum(UNCOUNTED_REASONS).meta({
  description:
    'Reason: the input is no event (`dead_letter`), an event with its id and other content was accepted before (`conflict`), a meter cannot use its value (`unusable`), or no meter matches it (`unmatched`).',
});

export const uncountedEventShape = z.object({
  id: z.string().meta({ description: 'Position of the event in the log; the id of a dead letter.' }),
  reason,
  message: z.string().meta({ description: 'Explanation of the reason.' }),
  event_id: z.string().nullable().meta({ description: 'Id of the event; null if none can be read.' }),
  event_name: z.string().nullable().meta({ description: 'Name of the event; null if none can be read.' }),
  external_customer_id: z
    .string()
    .nullable()
    .meta({ description: 'External id of the customer; null if none can be read.' }),
  meter_id: z.string().nullable().meta({ description: 'Meter that cannot use the value; null for other reasons.' }),
  received_at: timestampText.meta({ description: 'Time of receipt.' }),
});

/** The events of about a minute that were not counted for one reason. */
export const eventRejectionShape = z.object({
  reason,
  since: timestampText.meta({ description: 'Time of receipt of the first event.' }),
  events: z.array(uncountedEventShape).meta({ description: 'The newest of the events, at most ten.' }),
  has_more: z.boolean().meta({ description: 'True if there are more; `GET /events/uncounted` lists all.' }),
});
