/** GET /events/uncounted: our addition to the interface. */
import { z } from 'zod';
import { listUncountedEvents, showUncountedEvent } from '../../../actions/metering/events/list-uncounted-events.ts';
import { anyCase, orNull, wholeNumber } from '../../../core/foundation/record.ts';
import { UNCOUNTED_REASONS, uncountedEventShape } from '../../../core/metering/event/uncounted.ts';
import { type Route, route } from '../../http/route.ts';
import { checkRange, instantUs, withBounds } from '../usage/query-fields.ts';
import { cursorField, formatPlaceCursor, parsePlaceCursor } from './place-cursor.ts';

export const UncountedEventAnswer = uncountedEventShape.meta({ id: 'UncountedEvent' });

const UncountedEventsQuery = z.object({
  reason: orNull(anyCase(UNCOUNTED_REASONS)).meta({ description: 'Reason to match. Default: all.' }),
  event_name: orNull(z.string().trim()).meta({ description: 'Name of the events.' }),
  external_customer_id: orNull(z.string()).meta({ description: 'External id of the customer.' }),
  start_time: instantUs.meta({ description: 'Earliest time of receipt, inclusive.' }),
  end_time: instantUs.meta({ description: 'Exclusive end of the times of receipt.' }),
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
      'Returns accepted input that a meter does not count, newest receipt first, with the reason. An event is listed once for each meter that cannot use its value. Replayed dead letters and corrected events are omitted. A page may have fewer events than `limit`, or none, while `next_cursor` is set: [Events that count nowhere](/docs/rules/events.md#events-that-count-nowhere).',
    tag: 'Events',
    access: 'event:read',
    query: UncountedEventsQuery,
    success: 200,
    answer: z
      .object({
        items: z.array(UncountedEventAnswer).meta({ description: 'Page of the events, newest receipt first.' }),
        next_cursor: z.string().nullable().meta({ description: '`cursor` of the next page; null on the last one.' }),
      })
      .meta({ id: 'ListUncountedEventsResponse' }),
    async handle({ query }, context) {
      const { reason, cursor, start_time: start_us, end_time: end_us, ...filters } = query;
      if (start_us !== null && end_us !== null) checkRange({ start_us, end_us });
      const after = parsePlaceCursor(cursor);
      const { services, scope } = context;
      const { events, next } = await withBounds(context, (bounds) =>
        listUncountedEvents(services, scope, {
          ...{ ...filters, start_us, end_us, after, bounds },
          reasons: reason === null ? UNCOUNTED_REASONS : [reason],
        }),
      );
      const items = events.map(showUncountedEvent);
      return { items, next_cursor: next && formatPlaceCursor(next) };
    },
  }),
];
