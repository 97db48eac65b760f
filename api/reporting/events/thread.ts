/** GET /events/{id}/thread: our addition to the interface. */
import { z } from 'zod';
import {
  type EventThread,
  followEvent,
  THREAD_REASONS,
  THREAD_STATUSES,
} from '../../../actions/reporting/events/event-thread.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { notFound } from '../../../core/foundation/error.ts';
import { completeKeys } from '../../../core/foundation/json/complete-keys.ts';
import { decimalText, timestampText } from '../../../core/foundation/record.ts';
import { formatMs } from '../../../core/foundation/time/instant.ts';
import { idParams, type Route, route } from '../../http/route.ts';
import { EventAnswer, formatEventJson } from '../../metering/events/event-json.ts';

const ThreadMeter = z.object({
  meter_id: z.string(),
  name: z.string().meta({ description: 'Name of the meter.' }),
  aggregation: z.string().meta({ description: 'Type of the aggregation.' }),
  value: decimalText.meta({ description: 'Contribution of the event: 1, or the value that is aggregated.' }),
  quantity: z.string().meta({ description: 'Usage that the event adds: `after` − `before`, with its sign.' }),
  before: decimalText.meta({ description: 'Usage of the customer in the period without the event.' }),
  after: decimalText.meta({ description: 'Usage of the customer in the period with the event.' }),
  period_start: timestampText.meta({ description: 'Start of the period in which the usage counts.' }),
  period_end: timestampText.meta({ description: 'Exclusive end of that period.' }),
  is_priced: z.boolean().meta({ description: 'True if a published price uses the meter.' }),
});

const ThreadCharge = z.object({
  subscription_id: z.string().meta({ description: 'Subscription that charges for the event.' }),
  subscription_line_item_id: z.string().meta({ description: 'Line item of the subscription.' }),
  plan_name: z
    .string()
    .nullable()
    .meta({ description: 'Name of the plan or add-on of the line item; null without one.' }),
  price_id: z.string().meta({ description: 'Price of the line item at the time of the event.' }),
  price_name: z.string().meta({ description: 'Name of the line item on invoices.' }),
  meter_id: z.string(),
  period_start: timestampText.meta({ description: 'Start of the charged period.' }),
  period_end: timestampText.meta({ description: 'Exclusive end of the charged period.' }),
  quantity_before: decimalText.meta({ description: 'Charged units without the event.' }),
  quantity_after: decimalText.meta({ description: 'Charged units with the event.' }),
  before: decimalText.meta({ description: 'Cost of the period without the event, unrounded.' }),
  after: decimalText.meta({
    description: 'Cost of the period with the event, unrounded. The invoice line is rounded.',
  }),
  amount: decimalText.meta({ description: 'Cost of the event: `after` − `before`.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217).' }),
  tier: z
    .int()
    .nullable()
    .meta({ description: 'Number of the highest tier whose units the event changes, from 1; null without tiers.' }),
  written_out: z
    .string()
    .meta({ description: '`amount` as a sum, in units × unit amount and fixed amounts of the tiers.' }),
});

const BillingInvoice = z.object({
  invoice_id: z.string().meta({ description: 'Id of the final invoice.' }),
  invoice_number: z.string().nullable().meta({ description: 'Number of the invoice.' }),
  invoice_line_item_id: z.string().meta({ description: 'Line that counts the event.' }),
  subscription_id: z.string().meta({ description: 'Subscription of the first charge.' }),
  amount: decimalText.meta({ description: 'Total of the invoice.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217).' }),
  period_end: timestampText.nullable().meta({ description: 'End of the period of the invoice.' }),
});

const NextInvoice = z.object({
  subscription_id: z.string().meta({ description: 'Subscription of the first charge.' }),
  amount: decimalText.meta({ description: 'Total of the invoice.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217).' }),
  period_end: timestampText.nullable().meta({ description: 'End of the period of the invoice.' }),
  invoice_id: z.string().nullable().meta({ description: 'Id of the invoice; null if it does not exist yet.' }),
});

/** All fields except the event, which is sent as its original text. */
const ThreadFields = z.object({
  status: z.enum(THREAD_STATUSES).meta({
    description:
      'Status: `processing` until the event takes effect; then `counted` by a meter, `corrected` if it is counted with replaced content, `voided`, or `not_counted`.',
  }),
  reason: z.enum(THREAD_REASONS).nullable().meta({
    description:
      'Reason why the event is not counted, as in `GET /events/uncounted`; or why no line item charges for it: `no_customer`, `no_price` or `no_subscription`. Null for a charged event.',
  }),
  detail: z.string().nullable().meta({ description: 'Explanation of the reason; null without one.' }),
  nearest_event_name: z
    .string()
    .nullable()
    .meta({ description: 'Event name of a meter that is spelled almost like that of the event; null if none is.' }),
  customer: z
    .object({
      id: z.string(),
      name: z.string().nullable().meta({ description: 'Name of the customer; null without one.' }),
      external_id: z.string().meta({ description: 'Id of the customer in your system.' }),
    })
    .nullable()
    .meta({ description: 'Customer of the event; null if there is none.' }),
  meters: z.array(ThreadMeter).meta({ description: 'Meters that count the event.' }),
  charges: z.array(ThreadCharge).meta({
    description: 'Charges of the period of the event that bill it, and those that it changes.',
  }),
  invoice: BillingInvoice.nullable().meta({
    description:
      'Final invoice whose line of the first charge, or for late events of it, counts the event. Null until there is one.',
  }),
  next_invoice: NextInvoice.nullable().meta({
    description:
      'Draft, or next invoice, that charges the event, or its correction after `invoice`. Null without a charge, and if final invoices have charged all.',
  }),
});

export const EventThreadAnswer = ThreadFields.extend({
  event: EventAnswer.nullable().meta({
    description: 'Event as it counts now; null if no input with this id is an event.',
  }),
}).meta({ id: 'EventThread' });

/** Records that a thread shows beside the event. */
const THREAD_ENTITIES = ['customer', 'meter', 'subscription', 'price', 'invoice'] as const;

export const threadRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/:id/thread',
    operation_id: 'getEventThread',
    summary: 'Follow an event to its invoice',
    description:
      'Returns the meters that count the event, with the usage of the customer without it and with it; the charges of that usage, with their cost without it and with it, unrounded; and the invoice. If no meter counts the event, `reason` and `nearest_event_name` explain it. Also needs the permissions to read customers, meters, subscriptions, prices and invoices: [The thread of an event](/docs/rules/events.md#the-thread-of-an-event).',
    tag: 'Events',
    access: 'event:read',
    params: idParams,
    ids_are_texts: true,
    success: 200,
    answer: EventThreadAnswer,
    handle: async ({ params }, { services, scope, now, response, principal }) => {
      for (const entity of THREAD_ENTITIES) requireRead(principal, entity, 'the thread of an event');
      const thread = await followEvent(services, scope, { id: params.id, now });
      if (!thread) throw notFound('event', params.id);
      const event = thread.event ? formatEventJson(thread.event, scope) : 'null';
      const others = JSON.stringify(completeKeys(ThreadFields, showThread(thread)));
      response
        .status(200)
        .type('application/json')
        .send(`{"event":${event},${others.slice(1)}`);
    },
  }),
];

function showThread({ status, fault, nearest_event_name, customer, invoice, next_invoice, ...thread }: EventThread) {
  return {
    status,
    reason: fault?.reason ?? null,
    detail: fault?.detail ?? null,
    nearest_event_name,
    customer: customer && { id: customer.id, name: customer.name || null, external_id: customer.external_id },
    meters: thread.meters.map(showMeter),
    charges: thread.charges.map(showCharge),
    invoice,
    next_invoice,
  };
}

function showMeter({ meter, value, before, after, period, is_priced }: EventThread['meters'][number]) {
  return {
    meter_id: meter.id,
    name: meter.name,
    aggregation: meter.aggregation.type,
    value: new Decimal(value),
    quantity: formatSigned(after.minus(before)),
    before,
    after,
    period_start: formatMs(period.start),
    period_end: formatMs(period.end),
    is_priced,
  };
}

function formatSigned(quantity: Decimal): string {
  return quantity.isPositive() && !quantity.isZero()
    ? `+${quantity.toFixed()}`
    : quantity.abs().isZero()
      ? '0'
      : quantity.toFixed();
}

function showCharge({ charge, subscription, tier, ...difference }: EventThread['charges'][number]) {
  const { item, service, display_name } = charge;
  return {
    subscription_id: subscription.id,
    subscription_line_item_id: item.id,
    plan_name: item.line_item.plan_display_name ?? null,
    price_id: item.price.id,
    price_name: display_name,
    meter_id: item.meter_id,
    period_start: formatMs(service.start),
    period_end: formatMs(service.end),
    ...difference,
    currency: subscription.currency,
    tier: tier === null ? null : tier + 1,
  };
}
