/** An event with what became of it, as it is answered: each step of its road, and what was sent with its id beside it. */
import { z } from 'zod';
import { CustomerAnswer } from '../customers/schema.ts';
import { ErrorAnswer } from '../http/errors.ts';
import { MeterAnswer } from '../meters/schema.ts';
import { PriceAnswer } from '../prices/schema.ts';
import { SubscriptionLineItemAnswer } from '../subscriptions/answer.ts';
import { correctionFields } from './corrections.ts';
import { EventAnswer } from './event-json.ts';

const text = (description: string) => z.string().meta({ description });

const step = {
  status: z.enum(['unprocessed', 'not_found', 'found', 'error', 'processing', 'attributed']).meta({
    description: '`found`, `not_found`, or `unprocessed` where an earlier step found nothing.',
  }),
  error: ErrorAnswer.nullable().meta({ description: 'What is missing; null where it was found or not looked for.' }),
};

const CustomerLookup = z.object({
  ...step,
  customer: CustomerAnswer.nullable().meta({ description: 'The customer; null where there is none.' }),
});

const MatchedMeter = z.object({
  meter_id: z.string(),
  event_name: z.string(),
  meter: MeterAnswer.meta({ description: 'The meter as it is now.' }),
  value: text('What the event comes to in it: 1, or the value that is aggregated.'),
});

const RefusedMeter = z.object({
  meter_id: z.string(),
  key: text('The property that the filter looks at.'),
  accepted: z.array(z.string()).meta({ description: 'The values that pass the filter.' }),
  why: text('Why the event does not pass.'),
});

const UnusableMeter = z.object({ meter_id: z.string(), reason: text('Why the value cannot be counted.') });

const MeterMatching = z.object({
  ...step,
  matched_meters: z
    .array(MatchedMeter)
    .meta({ description: 'Meters that count the event, and what it comes to in each.' }),
  refused_meters: z
    .array(RefusedMeter)
    .meta({ description: 'Meters of this event name, and the filter of each that refused the event.' }),
  unusable_meters: z
    .array(UnusableMeter)
    .meta({ description: 'Meters that match, and why they cannot count the event.' }),
});

const MatchedPrice = z.object({
  price_id: text('The price.'),
  meter_id: z.string(),
  status: text('published, or archived with its plan.'),
  price: PriceAnswer.meta({ description: 'The price as it is now.' }),
});

const PriceLookup = z.object({
  ...step,
  matched_prices: z.array(MatchedPrice).meta({ description: 'Prices of the meters that count the event.' }),
});

const MatchedLineItem = z.object({
  sub_line_item_id: text('The line item.'),
  subscription_id: text('The subscription that it belongs to.'),
  price_id: text('The price that it charges by.'),
  start_date: text('From here on the line item charges.'),
  end_date: text('From here on it does not; null while it has no end.').nullable(),
  is_active_for_event: z
    .boolean()
    .meta({ description: 'Whether it charges for the event: the time fits, and its subscription lived then.' }),
  timestamp_within_range: z.boolean().meta({ description: 'Whether the event lies between its start and its end.' }),
  subscription_line_item: SubscriptionLineItemAnswer.meta({ description: 'The line item as it is now.' }),
});

const LineItemLookup = z.object({
  ...step,
  matched_line_items: z
    .array(MatchedLineItem)
    .meta({ description: 'Line items of the customer with one of the prices, whether or not their time fits.' }),
});

const FailurePoint = z.object({
  failure_point_type: z
    .enum(['customer_lookup', 'meter_lookup', 'price_lookup', 'subscription_line_item_lookup'])
    .meta({ description: 'The first step that found nothing.' }),
  error: ErrorAnswer.meta({ description: 'What is missing there.' }),
});

const DebugTracker = z
  .object({
    customer_lookup: CustomerLookup.meta({ description: 'Who has the external id that the event names.' }),
    meter_matching: MeterMatching.meta({ description: 'Which meters count it.' }),
    price_lookup: PriceLookup.meta({ description: 'Which prices charge by these meters.' }),
    subscription_line_item_lookup: LineItemLookup.meta({
      description: 'Which line items of the customer charge by these prices.',
    }),
    failure_point: FailurePoint.nullable().meta({ description: 'Where its road ends; null where it is charged for.' }),
  })
  .meta({ id: 'DebugTracker' });

const ProcessedEventAnswer = z.object({
  customer_id: text('Who pays for it.'),
  subscription_id: text('The subscription that charges for it.'),
  sub_line_item_id: text('The line item that charges for it.'),
  price_id: text('The price of the line item.'),
  meter_id: z.string(),
  feature_id: text('The feature of the meter; empty when it has none.'),
  qty_total: text('What it comes to in the meter.'),
  processed_at: text('When it came in.'),
});

const Outcome = z.object({
  outcome: z.enum(['duplicate', 'conflict', 'dead_letter', 'unusable']).meta({
    description:
      'The same once more, another content with the same id, no event at all, or a value that a meter cannot count.',
  }),
  meter_id: z.string().nullable(),
  reason: text('Why it was not counted.'),
  received_at: text('When it came in.'),
  body: z.string().nullable().meta({ description: 'The bytes as they came, of conflicts and dead letters.' }),
});

/** All but the event itself, which is answered as the text that came in. */
export const EventProcessingAnswer = z.object({
  status: z.enum(['processed', 'processing', 'failed']).meta({
    description: '`processing` until usage holds it; `failed` where no line item charges for it, or it is no event.',
  }),
  processed_events: z
    .array(ProcessedEventAnswer)
    .meta({ description: 'The line items that charge for it; none while it is processing, or when it was voided.' }),
  debug_tracker: DebugTracker.nullable().meta({ description: 'Its road, step by step; null where it is no event.' }),
  corrections: z
    .array(z.object(correctionFields))
    .meta({ description: 'Who voided or replaced the event, oldest first.' }),
  outcomes: z.array(Outcome).meta({ description: 'What else was sent with this id, and what could not be counted.' }),
});

export const EventByIdAnswer = EventProcessingAnswer.extend({
  event: EventAnswer.nullable().meta({
    description: 'As it counts now; null where what was sent with this id is no event.',
  }),
}).meta({ id: 'GetEventByIDResponse' });
