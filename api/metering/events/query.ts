/** GET /events and POST /events/query: events as sent, in pages by offset or cursor. */
import { z } from 'zod';
import { invalid } from '../../../core/foundation/error.ts';
import { anyCase, orDefault, orNull, wholeNumber } from '../../../core/foundation/record.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import {
  countFoundEvents,
  type EventPlace,
  type FoundEvent,
  type FoundEventsQuery,
  findEvents,
} from '../../../storage/events/find-events.ts';
import { sendJsonText } from '../../http/compress.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { instantUs, propertyValues, withBounds } from '../usage/query-fields.ts';
import { EventAnswer, formatEventJson } from './event-json.ts';

/** Parses property filters in the form `k1:v1,v2;k2:v3`. */
const filtersInText = z
  .string()
  .nullish()
  .transform((text, context) => {
    if (!text?.trim()) return null;
    const filters: Record<string, string[]> = {};
    for (const part of text.split(';').filter((piece) => piece.trim() !== '')) {
      const colon = part.indexOf(':');
      const key = part.slice(0, Math.max(0, colon)).trim();
      const values = part
        .slice(colon + 1)
        .split(',')
        .filter((value) => value !== '');
      if (key === '' || values.length === 0) context.addIssue('must be written as name:value,value;name:value');
      else Object.defineProperty(filters, key, { value: values, enumerable: true });
    }
    return filters;
  });

const PAGE_SIZE = 50;

const eventsQueryFields = {
  external_customer_id: orNull(z.string()).meta({ description: 'External id of the customer.' }),
  event_name: orNull(z.string().trim()).meta({ description: 'Name of the events.' }),
  event_id: orNull(z.string()).meta({ description: 'Id of the event.' }),
  source: orNull(z.string()).meta({ description: 'Source of the events.' }),
  start_time: instantUs.meta({ description: 'Earliest instant of the events, inclusive.' }),
  end_time: instantUs.meta({ description: 'Exclusive end of the events.' }),
  sort: orDefault(anyCase(['timestamp', 'event_name']), 'timestamp').meta({
    description:
      'Column of the order: timestamp or event_name. With a cursor it must be timestamp. Default: timestamp.',
  }),
  order: orDefault(anyCase(['asc', 'desc']), 'desc').meta({ description: 'Direction of `sort`. Default: desc.' }),
  offset: orDefault(wholeNumber.pipe(z.int().min(0)), 0).meta({
    description: 'Number of events to skip: the number on the pages before. Default: 0.',
  }),
  iter_first_key: orNull(z.string()).meta({ description: 'Cursor from an answer, for the page before that answer.' }),
  iter_last_key: orNull(z.string()).meta({ description: 'Cursor from an answer, for the page after that answer.' }),
  count_total: orDefault(
    z.union([z.boolean(), z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0'] })]),
    false,
  ).meta({ description: 'True to return the number of all matching events. Default: false.' }),
};
const pageSize = (most: number) =>
  orDefault(wholeNumber.pipe(z.int().min(1).max(most)), PAGE_SIZE).meta({
    description: 'Maximum number of events per page. Default: 50.',
  });

const GetEventsQuery = z.object({
  ...eventsQueryFields,
  page_size: pageSize(PAGE_SIZE),
  property_filters: filtersInText.meta({
    description: 'Properties and their accepted values: name:value,value;name:value.',
  }),
});
const GetEventsRequest = z
  .object({
    ...eventsQueryFields,
    page_size: pageSize(1000),
    property_filters: propertyValues.meta({
      description: 'Accepted values by property name; all properties must match.',
    }),
  })
  .meta({ id: 'GetEventsRequest', example: { external_customer_id: 'acme', event_name: 'api_call', page_size: 10 } });
type GetEventsInput = z.output<typeof GetEventsRequest>;

export const GetEventsAnswer = z
  .object({
    events: z.array(EventAnswer).meta({ description: 'Page of the matching events.' }),
    has_more: z
      .boolean()
      .meta({ description: 'True if further events follow. A page ends early if its properties would exceed 8 MiB.' }),
    iter_first_key: z
      .string()
      .nullable()
      .meta({ description: 'Cursor for the page before this one; null on an empty page.' }),
    iter_last_key: z
      .string()
      .nullable()
      .meta({ description: 'Cursor for the page after this one; null on an empty page.' }),
    total_count: z
      .int()
      .nullable()
      .meta({ description: 'Number of all matching events; null unless `count_total` is true.' }),
    offset: z.int().nullable().meta({ description: 'Offset from the request; null with a cursor.' }),
  })
  .meta({ id: 'GetEventsResponse' });

export const queryRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events',
    operation_id: 'listEvents',
    summary: 'List events',
    description:
      'Returns events as sent. Default order: newest first. A page has fewer events than `page_size` if they are long. For the next page send `iter_last_key` of the answer, which stays exact while events arrive, or increase `offset` by the number of returned events.',
    tag: 'Events',
    access: 'event:read',
    query: GetEventsQuery,
    success: 200,
    answer: GetEventsAnswer,
    handle: ({ query }, context) => answerEvents(query, context),
  }),
  route({
    method: 'post',
    path: '/events/query',
    operation_id: 'listRawEvents',
    summary: 'Query events',
    description: 'Returns the same as `GET /events`, with the query in the body and up to 1,000 events per page.',
    tag: 'Events',
    access: 'event:read',
    body: GetEventsRequest,
    success: 200,
    answer: GetEventsAnswer,
    handle: ({ body }, context) => answerEvents(body, context),
  }),
];

/** Writes the JSON itself: the route's encoder would convert the properties to binary floating-point numbers. */
async function answerEvents(query: GetEventsInput, context: Context): Promise<void> {
  const { services, scope, request, response } = context;
  const wanted = toEventConditions(query, context);
  const [page, total_count] = await withBounds(context, async (bounds) => {
    // The two queries run one after the other. If each request needed two query slots at once, requests with one slot each could block
    // each other.
    const found = await readPage(query, { ...wanted, bounds }, context);
    return [found, query.count_total ? await countFoundEvents(services.clickhouse, { ...wanted, bounds }) : null];
  });
  const { events, has_more } = page;
  const rest = {
    has_more,
    iter_first_key: events.length > 0 ? formatPageKey(events[0]!) : null,
    iter_last_key: events.length > 0 ? formatPageKey(events.at(-1)!) : null,
    total_count,
    offset: hasCursor(query) ? null : query.offset,
  };
  const list = events.map((event) => formatEventJson(event, scope)).join(',');
  sendJsonText(request, response, `{"events":[${list}],${JSON.stringify(rest).slice(1)}`);
}

function toEventConditions(query: GetEventsInput, { scope }: Context): FoundEventsQuery {
  const { external_customer_id, event_name, event_id, source, property_filters, start_time, end_time } = query;
  if (start_time !== null && end_time !== null) checkRange({ start_us: start_time, end_us: end_time });
  if (hasCursor(query) && query.sort !== 'timestamp')
    throw invalid('sort', 'must be timestamp with iter_first_key or iter_last_key');
  const filters = { external_customer_id, event_name, event_id, source, property_filters };
  return { ...scope, ...filters, start_us: start_time, end_us: end_time };
}

/**
 * In either order, "iter_last_key" continues after the last event of a page, and "iter_first_key" returns the page before its first
 * event. One event more than the page is read to detect further events.
 */
async function readPage(query: GetEventsInput, wanted: FoundEventsQuery, { services }: Context) {
  const { page_size, sort, order } = query;
  const after = parsePageKey('iter_last_key', query.iter_last_key);
  const before = parsePageKey('iter_first_key', query.iter_first_key);
  const backwards = before !== undefined && after === undefined;
  const [earlier_than, later_than] = order === 'desc' ? [after, before] : [before, after];
  const opposite = order === 'desc' ? 'asc' : 'desc';
  const { events: found, is_cut } = await findEvents(
    services.clickhouse,
    { ...wanted, earlier_than, later_than },
    {
      order: { by: sort, direction: backwards ? opposite : order },
      offset: hasCursor(query) ? 0 : query.offset,
      limit: page_size + 1,
    },
  );
  const events = found.slice(0, page_size);
  return { events: backwards ? events.reverse() : events, has_more: is_cut || found.length > page_size };
}

function hasCursor({ iter_first_key, iter_last_key }: GetEventsInput): boolean {
  return iter_first_key !== null || iter_last_key !== null;
}

/** Formats the position of an event as `<unix-nanos>::<event id>`. */
function formatPageKey({ timestamp_us, event_id }: FoundEvent): string {
  return `${BigInt(timestamp_us) * 1000n}::${event_id}`;
}

function parsePageKey(field: string, key: string | null): EventPlace | undefined {
  if (key === null) return undefined;
  const parts = /^(-?\d{1,19})::(.+)$/su.exec(key);
  if (!parts) throw invalid(field, 'must be a key of an earlier answer: <unix nanoseconds>::<event id>');
  return { timestamp_us: Number(BigInt(parts[1]!) / 1000n), event_id: parts[2]! };
}
