/** Answer of the event debugger: the event, each step of its processing, and other input with its id. */
import { z } from 'zod';
import { CustomerAnswer } from '../../catalog/customers/schema.ts';
import { PriceAnswer } from '../../catalog/prices/schema.ts';
import { ErrorAnswer } from '../../http/errors.ts';
import { correctionFields } from '../../metering/events/corrections.ts';
import { EventAnswer } from '../../metering/events/event-json.ts';
import { MeterAnswer } from '../../metering/meters/schema.ts';
import { SubscriptionLineItemAnswer } from '../../subscriptions/answer.ts';

const text = (description: string) => z.string().meta({ description });

const step = {
  status: z.enum(['unprocessed', 'not_found', 'found', 'error', 'processing', 'attributed']).meta({
    description: 'Result of the step: `found`, `not_found`, or `unprocessed` if an earlier step found nothing.',
  }),
  error: ErrorAnswer.nullable().meta({
    description: 'Error that names the missing record; null if it was found or the step did not run.',
  }),
};

const CustomerLookup = z.object({
  ...step,
  customer: CustomerAnswer.nullable().meta({ description: 'Customer of the event; null if there is none.' }),
});

const MatchedMeter = z.object({
  meter_id: z.string(),
  event_name: z.string(),
  meter: MeterAnswer.meta({ description: 'Current state of the meter.' }),
  value: text('Contribution of the event: 1, or the value that is aggregated.'),
});

const RefusedMeter = z.object({
  meter_id: z.string(),
  key: text('Property that the filter checks.'),
  accepted: z.array(z.string()).meta({ description: 'Values that pass the filter.' }),
  why: text('Reason why the event does not pass.'),
});

const UnusableMeter = z.object({ meter_id: z.string(), reason: text('Reason why the value cannot be counted.') });

const MeterMatching = z.object({
  ...step,
  matched_meters: z
    .array(MatchedMeter)
    .meta({ description: 'Meters that count the event, with its contribution to each.' }),
  refused_meters: z
    .array(RefusedMeter)
    .meta({ description: 'Meters of this event name that refuse the event, with the filter that refuses it.' }),
  unusable_meters: z
    .array(UnusableMeter)
    .meta({ description: 'Meters that match but cannot count the event, with the reason.' }),
});

const MatchedPrice = z.object({
  price_id: text('Id of the price.'),
  meter_id: z.string(),
  status: text('Status: published, or archived with its plan.'),
  price: PriceAnswer.meta({ description: 'Current state of the price.' }),
});

const PriceLookup = z.object({
  ...step,
  matched_prices: z.array(MatchedPrice).meta({ description: 'Prices of the meters that count the event.' }),
});

const MatchedLineItem = z.object({
  sub_line_item_id: text('Id of the line item.'),
  subscription_id: text('Subscription of the line item.'),
  price_id: text('Price of the line item.'),
  start_date: text('Start of the charges.'),
  end_date: text('Exclusive end of the charges; null without an end.').nullable(),
  is_active_for_event: z.boolean().meta({
    description:
      'True if the line item charges for the event: the time is within its range, and its subscription was active then.',
  }),
  timestamp_within_range: z
    .boolean()
    .meta({ description: 'True if the event is between the start and the end of the line item.' }),
  subscription_line_item: SubscriptionLineItemAnswer.meta({ description: 'Current state of the line item.' }),
});

const LineItemLookup = z.object({
  ...step,
  matched_line_items: z.array(MatchedLineItem).meta({
    description:
      'Line items of the customer with one of the prices, including those that are not active at the time of the event.',
  }),
});

const FailurePoint = z.object({
  failure_point_type: z
    .enum(['customer_lookup', 'meter_lookup', 'price_lookup', 'subscription_line_item_lookup'])
    .meta({ description: 'First step that found nothing.' }),
  error: ErrorAnswer.meta({ description: 'Error that names the missing record.' }),
});

const DebugTracker = z
  .object({
    customer_lookup: CustomerLookup.meta({ description: 'Search for the customer with the external id of the event.' }),
    meter_matching: MeterMatching.meta({ description: 'Search for the meters that count the event.' }),
    price_lookup: PriceLookup.meta({ description: 'Search for the prices of the meters that count the event.' }),
    subscription_line_item_lookup: LineItemLookup.meta({
      description: 'Search for the line items of the customer with the found prices.',
    }),
    failure_point: FailurePoint.nullable().meta({
      description:
        'First step that found nothing, so that no line item charges for the event; a meter may count it. Null if a line item charges for it.',
    }),
  })
  .meta({ id: 'DebugTracker' });

const ProcessedEventAnswer = z.object({
  customer_id: text('Customer of the line item.'),
  subscription_id: text('Subscription that charges for the event.'),
  sub_line_item_id: text('Line item that charges for the event.'),
  price_id: text('Price of the line item.'),
  meter_id: z.string(),
  feature_id: text('Feature of the meter; empty without one.'),
  qty_total: text('Contribution of the event to the meter.'),
  processed_at: text('Time of receipt.'),
});

const Outcome = z.object({
  outcome: z.enum(['duplicate', 'conflict', 'dead_letter', 'unusable']).meta({
    description:
      'Outcome: the same event again (duplicate), other content with the same id (conflict), no valid event (dead_letter), or a value that a meter cannot count (unusable).',
  }),
  meter_id: z.string().nullable(),
  reason: text('Reason why the input was not counted.'),
  received_at: text('Time of receipt.'),
  body: z.string().nullable().meta({ description: 'Bytes as received, for conflicts and dead letters.' }),
});

/** All fields except the event, which is sent as its original text. */
export const EventProcessingAnswer = z.object({
  status: z.enum(['processed', 'processing', 'failed']).meta({
    description:
      'Status: `processing` until the event takes effect, then `processed`; `failed` if no meter counts the event, or the input is not an event.',
  }),
  processed_events: z.array(ProcessedEventAnswer).meta({
    description: 'Line items that charge for the event; empty while the event is being processed, or if it is voided.',
  }),
  debug_tracker: DebugTracker.nullable().meta({
    description: 'Steps of the processing; null if the input is not an event.',
  }),
  corrections: z.array(z.object(correctionFields)).meta({ description: 'Corrections of the event, oldest first.' }),
  outcomes: z.array(Outcome).meta({ description: 'Other input with this id, and values that could not be counted.' }),
  state: z.enum(['processing', 'charged', 'counted', 'unmatched', 'unusable', 'voided', 'rejected']).meta({
    description:
      'State: `processing`; `charged` by a line item; `counted` by a meter, while no line item charges for it (`failure_point` has the missing record, such as a customer that comes later); `unmatched` by any meter; `unusable` for every meter that it matches; `voided`; `rejected`, which is no event.',
  }),
});

export const EventByIdAnswer = EventProcessingAnswer.extend({
  event: EventAnswer.nullable().meta({
    description: 'Event as it counts now; null if no input with this id is an event.',
  }),
}).meta({ id: 'GetEventByIDResponse' });
