/** GET /events/{id} and /events/lookup: an event, its outcome and the reasons. */
import { z } from 'zod';
import { findEvent, type LocatedEvent, toMeteredEvent } from '../../../actions/reporting/events/find-event.ts';
import { type EventTrace, traceEvent } from '../../../actions/reporting/events/trace-event.ts';
import { errorRecord, notFound } from '../../../core/foundation/error.ts';
import { completeKeys } from '../../../core/foundation/json/complete-keys.ts';
import { formatUs } from '../../../core/foundation/time/instant.ts';
import type { FoundEvent } from '../../../storage/events/find-events.ts';
import { listEventOutcomes, type OutcomeRow } from '../../../storage/events/outcomes.ts';
import { listCorrections } from '../../../storage/progress/corrections.ts';
import { sendJsonText } from '../../http/compress.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { formatEventJson } from '../../metering/events/event-json.ts';
import { EventByIdAnswer, EventProcessingAnswer } from './debugger-answer.ts';

export const debuggerRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/:id',
    operation_id: 'getEvent',
    summary: 'Get an event and its outcome',
    description:
      'Returns the meters that count the event and its contribution to each, the meters that refuse it and why, the prices and line items that charge for it, and its corrections. `outcomes` has the input with this id that was not counted: repeats, conflicts and dead letters.',
    tag: 'Events',
    access: 'event:read',
    params: idParams,
    ids_are_texts: true,
    success: 200,
    answer: EventByIdAnswer,
    handle: ({ params }, context) => answerEvent(params.id, context),
  }),
  route({
    method: 'get',
    path: '/events/lookup',
    operation_id: 'lookupEvent',
    summary: 'Get an event by query parameter',
    description: 'Returns the same as `GET /events/{id}`, for an id that does not fit into a path.',
    tag: 'Events',
    access: 'event:read',
    query: z.object({ id: z.string().min(1).meta({ description: 'Id of the event, as sent.' }) }),
    success: 200,
    answer: EventByIdAnswer,
    handle: ({ query }, context) => answerEvent(query.id, context),
  }),
];

async function answerEvent(id: string, context: Context): Promise<void> {
  const { services, scope, request, response } = context;
  const corrections = await listCorrections(services.postgres, scope, id);
  const [found, outcomes] = await Promise.all([
    findEvent(services, scope, { id, is_corrected: corrections.length > 0 }),
    listEventOutcomes(services.clickhouse, scope, id),
  ]);
  if (!found && outcomes.length === 0) throw notFound('event', id);
  const shown = found
    ? await showEvent(found, context)
    : { status: 'failed', state: 'rejected', processed_events: [], debug_tracker: null };
  const event = found ? formatEventJson(found.event, scope) : 'null';
  const others = JSON.stringify(
    completeKeys(EventProcessingAnswer, { ...shown, corrections, outcomes: distinct(outcomes).map(showOutcome) }),
  );
  sendJsonText(request, response, `{"event":${event},${others.slice(1)}`);
}

async function showEvent({ event, in_effect, is_void }: LocatedEvent, { services, scope }: Context) {
  const trace = await traceEvent(services.postgres, scope, toMeteredEvent(event));
  const debug_tracker = buildTracker(trace, event);
  const state = in_effect ? (is_void ? 'voided' : deriveState(trace)) : 'processing';
  return {
    status: STATUSES[state],
    state,
    processed_events: in_effect && !is_void ? processedEvents(trace, event) : [],
    debug_tracker,
  };
}

/** Status of the published client for each state: an event is processed when usage includes it, charged or not. */
const STATUSES = {
  processing: 'processing',
  charged: 'processed',
  counted: 'processed',
  voided: 'processed',
  unmatched: 'failed',
  unusable: 'failed',
} as const;

function deriveState({ fed, matched, unusable }: EventTrace): keyof typeof STATUSES {
  if (fed.length > 0) return 'charged';
  if (matched.length > 0) return 'counted';
  return unusable.length > 0 ? 'unusable' : 'unmatched';
}

function processedEvents({ fed }: EventTrace, event: FoundEvent) {
  return fed.map(({ record, meter_id, feature_id, quantity }) => ({
    customer_id: record.customer_id,
    subscription_id: record.subscription_id,
    sub_line_item_id: record.id,
    price_id: record.price_id,
    meter_id,
    feature_id,
    qty_total: quantity,
    processed_at: formatUs(event.received_at_us),
  }));
}

function buildTracker(trace: EventTrace, event: FoundEvent) {
  const failures = deriveFailures(trace, event);
  const [failure_point_type] = STEPS.filter((step) => failures[step] !== null);
  const step = (name: (typeof STEPS)[number], blocked: boolean) => ({
    status: failures[name] === null ? 'found' : blocked ? 'unprocessed' : 'not_found',
    error: blocked ? null : failures[name],
  });
  const noMeter = trace.matched.length === 0;
  return {
    customer_lookup: { ...step('customer_lookup', false), customer: trace.customer },
    meter_matching: {
      ...step('meter_lookup', false),
      matched_meters: trace.matched.map(({ meter, quantity }) => ({
        meter_id: meter.id,
        event_name: meter.event_name,
        meter,
        value: quantity,
      })),
      refused_meters: trace.refused.map(({ meter, ...refusal }) => ({ meter_id: meter.id, ...refusal })),
      unusable_meters: trace.unusable.map(({ meter, reason }) => ({ meter_id: meter.id, reason })),
    },
    price_lookup: {
      ...step('price_lookup', noMeter),
      matched_prices: trace.prices.map((price) => ({
        price_id: price.id,
        meter_id: price.meter_id,
        status: price.status,
        price: { ...price, trial_period: price.trial_period_days },
      })),
    },
    subscription_line_item_lookup: {
      ...step('subscription_line_item_lookup', noMeter || trace.prices.length === 0 || trace.customer === null),
      matched_line_items: trace.line_items.map(({ record, ...fits }) => ({
        sub_line_item_id: record.id,
        subscription_id: record.subscription_id,
        price_id: record.price_id,
        start_date: record.start_date,
        end_date: record.end_date,
        ...fits,
        subscription_line_item: { ...record, trial_period: record.trial_period_days },
      })),
    },
    failure_point: failure_point_type ? { failure_point_type, error: failures[failure_point_type] } : null,
  };
}

/** Steps in the order of processing. */
const STEPS = ['customer_lookup', 'meter_lookup', 'price_lookup', 'subscription_line_item_lookup'] as const;

function deriveFailures(trace: EventTrace, event: FoundEvent) {
  const failure = (failed: boolean, what: string, id: string) => (failed ? errorRecord(notFound(what, id)) : null);
  const { customer, matched, prices, fed } = trace;
  return {
    customer_lookup: failure(customer === null, 'customer with external id', event.external_customer_id),
    meter_lookup: failure(matched.length === 0, 'meter that counts this event of name', event.event_name),
    price_lookup: failure(prices.length === 0, 'price of a meter of', event.event_name),
    subscription_line_item_lookup: failure(fed.length === 0, 'line item at the time of event', event.event_id),
  };
}

/** Removes repeated outcomes, because each version of a meter records an unusable event again. */
function distinct(outcomes: readonly OutcomeRow[]): OutcomeRow[] {
  const seen = new Set<string>();
  return outcomes.filter(({ outcome: kind, meter_id, reason }) => {
    if (kind !== 'unusable') return true;
    const key = JSON.stringify([meter_id, reason]);
    return !seen.has(key) && seen.add(key);
  });
}

function showOutcome({ outcome: kind, meter_id, reason, received_at_us, body }: OutcomeRow) {
  return {
    outcome: kind,
    meter_id: meter_id || null,
    reason,
    received_at: formatUs(received_at_us),
    body: body || null,
  };
}
