/** GET /events/uncounted: our addition to the interface. */
import { z } from 'zod';
import { describeUncountedEvents } from '../../../actions/metering/events/describe-uncounted-events.ts';
import {
  listUncountedEvents,
  listUncountedGroups,
  showUncountedEvent,
} from '../../../actions/metering/events/list-uncounted-events.ts';
import { canRead } from '../../../core/foundation/access/role.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { completeKeys } from '../../../core/foundation/json/complete-keys.ts';
import { anyCase, orNull, timestampText, wholeNumber } from '../../../core/foundation/record.ts';
import { formatUs, toUs, US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { UNCOUNTED_REASONS, uncountedEventShape } from '../../../core/metering/event/uncounted.ts';
import type { UncountedQuery } from '../../../storage/events/uncounted-events.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { instantUs, withBounds } from '../usage/query-fields.ts';
import { cursorField, formatPlaceCursor, parsePlaceCursor } from './place-cursor.ts';

/** All fields except the properties, which are sent as their original text. */
const UncountedFields = uncountedEventShape.extend({
  timestamp: timestampText.nullable().meta({ description: 'Time of the event; null for a dead letter or a conflict.' }),
  nearest_event_name: z.string().nullable().meta({
    description:
      'Event name of a meter that is spelled almost like that of an `unmatched` event; null if none is, or without the permission to read meters.',
  }),
});

const UncountedEventAnswer = UncountedFields.extend({
  properties: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ description: 'Properties as sent; null for a dead letter or a conflict.' }),
}).meta({ id: 'UncountedEvent' });

/** Number of events up to which a count is exact. */
const COUNTED_MAX = 1_000;

const UncountedCount = z.object({
  reason: z.enum(UNCOUNTED_REASONS).meta({ description: 'Reason of the events.' }),
  event_count: z.int().meta({ description: `Number of events, up to ${COUNTED_MAX}.` }),
  has_more: z.boolean().meta({ description: 'True if there may be more events with this reason.' }),
});

export const ListUncountedEventsAnswer = z
  .object({
    items: z.array(UncountedEventAnswer).meta({ description: 'Page of the events, newest receipt first.' }),
    counts: z
      .array(UncountedCount)
      .nullable()
      .meta({ description: 'Number of events for each reason, with the other filters; null unless `counts` is true.' }),
    next_cursor: z.string().nullable().meta({ description: '`cursor` of the next page; null on the last one.' }),
  })
  .meta({ id: 'ListUncountedEventsResponse' });

const UncountedEventsQuery = z.object({
  reason: orNull(anyCase(UNCOUNTED_REASONS)).meta({ description: 'Reason to match. Default: all.' }),
  event_name: orNull(z.string().trim()).meta({ description: 'Name of the events.' }),
  external_customer_id: orNull(z.string()).meta({ description: 'External id of the customer.' }),
  days: orNull(wholeNumber.pipe(z.int().min(1).max(31))).meta({
    description: 'Only events received in this number of days until now, 1 to 31. Refused with `start_time`.',
  }),
  start_time: instantUs.meta({ description: 'Earliest time of receipt, inclusive.' }),
  end_time: instantUs.meta({ description: 'Exclusive end of the times of receipt.' }),
  counts: z.stringbool().default(false).meta({ description: 'True to return `counts`. Default: false.' }),
  limit: wholeNumber
    .pipe(z.int().min(1).max(1000))
    .default(50)
    .meta({ description: 'Maximum number of events per page, 1 to 1,000. Default: 50.' }),
  cursor: cursorField,
});

export const uncountedRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/uncounted',
    operation_id: 'listUncountedEvents',
    summary: 'List events that are not counted',
    description:
      'Returns accepted input that a meter does not count, newest receipt first, with the reason. An event is listed once for each meter that cannot use its value. Replayed dead letters and corrected events are omitted. A page may have fewer events than `limit`, or none, while `next_cursor` is set. A short range (`days`) is cheaper: [Events that count nowhere](/docs/rules/events.md#events-that-count-nowhere).',
    tag: 'Events',
    access: 'event:read',
    query: UncountedEventsQuery,
    success: 200,
    answer: ListUncountedEventsAnswer,
    handle: async ({ query }, context) => {
      const { reason, cursor, days, counts: wants_counts, start_time, end_time: end_us, ...filters } = query;
      if (days !== null && start_time !== null) throw invalid('days', 'must not be sent with start_time');
      const start_us = days === null ? start_time : toUs(context.now.getTime()) - days * US_PER_DAY;
      if (start_us !== null && end_us !== null) checkRange({ start_us, end_us });
      const { services, scope, response, principal } = context;
      const mayName = canRead(principal, 'meter');
      const after = parsePlaceCursor(cursor);
      const wanted = { ...filters, start_us, end_us };
      const reasons = reason === null ? UNCOUNTED_REASONS : [reason];
      const { events, next } = await withBounds(context, (bounds) =>
        listUncountedEvents(services, scope, { ...wanted, after, bounds, reasons }),
      );
      const details = await describeUncountedEvents(services, scope, events);
      const items = events.map((event, index) => {
        const { timestamp_us, properties, ...named } = details[index]!;
        const nearest_event_name = mayName ? named.nearest_event_name : null;
        const timestamp = timestamp_us === null ? null : formatUs(timestamp_us);
        const shown = completeKeys(UncountedFields, { ...showUncountedEvent(event), timestamp, nearest_event_name });
        return `{"properties":${properties ?? 'null'},${JSON.stringify(shown).slice(1)}`;
      });
      const counts = wants_counts ? await countByReason(wanted, context) : null;
      const rest = JSON.stringify({ counts, next_cursor: next && formatPlaceCursor(next) });
      response
        .status(200)
        .type('application/json')
        .send(`{"items":[${items.join(',')}],${rest.slice(1)}`);
    },
  }),
];

/** Counts by listing, so that counts and list cannot disagree. */
async function countByReason(wanted: Omit<UncountedQuery, 'after' | 'limit' | 'bounds'>, context: Context) {
  const { services, scope } = context;
  const groups = UNCOUNTED_REASONS.map((reason) => [reason]);
  const pages = await withBounds(context, (bounds) =>
    listUncountedGroups(services, scope, { ...wanted, after: null, limit: COUNTED_MAX, bounds, groups }),
  );
  return UNCOUNTED_REASONS.map((reason, index): z.input<typeof UncountedCount> => {
    const { events, next } = pages[index]!;
    return { reason, event_count: events.length, has_more: next !== null };
  });
}
