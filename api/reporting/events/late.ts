/** GET /events/late: our addition to the interface. */
import { z } from 'zod';
import {
  LATE_CUSTOMERS_MAX,
  LATE_LINES_MAX,
  listLateEvents,
  type MissedLine,
} from '../../../actions/reporting/events/late-events.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { completeKeys } from '../../../core/foundation/json/complete-keys.ts';
import { orNull, timestampText, wholeNumber } from '../../../core/foundation/record.ts';
import { formatUs, LAST_INSTANT_US, toMs, toUs, US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { INVOICE_STATUSES } from '../../../core/invoicing/invoice/record.ts';
import { type Route, route } from '../../http/route.ts';
import { EventAnswer, formatEventJson } from '../../metering/events/event-json.ts';
import { cursorField, formatPlaceCursor, parsePlaceCursor } from '../../metering/events/place-cursor.ts';
import { BEGINNING_US, instantUs, withBounds } from '../../metering/usage/query-fields.ts';

const DAYS_MAX = 366;
const DAYS_DEFAULT = 92;
/** Number of events up to which the count is exact. */
const COUNTED_MAX = 1_000;

const MissedInvoice = z.object({
  invoice_id: z.string().meta({ description: 'Final invoice for which the event came too late.' }),
  invoice_number: z.string().nullable().meta({ description: 'Number of that invoice.' }),
  finalized_at: timestampText.meta({ description: 'Time at which that invoice became final.' }),
  period_start: timestampText.meta({ description: 'Start of the period of the line that lacks the event.' }),
  period_end: timestampText.meta({ description: 'Exclusive end of that period.' }),
  charged_by: z
    .object({
      invoice_id: z.string().meta({ description: 'Invoice whose line counts the event.' }),
      invoice_number: z.string().nullable().meta({ description: 'Number of that invoice; null on a draft.' }),
      invoice_status: z.enum(INVOICE_STATUSES).meta({ description: 'Status of that invoice.' }),
    })
    .nullable()
    .meta({
      description: 'Draft or final invoice whose line for late events counts the event; null until there is one.',
    }),
});

const invoices = z
  .array(MissedInvoice)
  .meta({ description: 'Final invoices for which the event came too late; usually one.' });
const LateFields = z.object({ invoices });
const LateEventAnswer = EventAnswer.extend({ invoices }).meta({ id: 'LateEvent' });

const LateEventCount = z.object({
  event_count: z.int().meta({ description: `Number of events, exact up to ${COUNTED_MAX}.` }),
  has_more: z.boolean().meta({ description: 'True if there may be more events.' }),
});

export const ListLateEventsAnswer = z
  .object({
    items: z.array(LateEventAnswer).meta({ description: 'Events of the page, newest receipt first.' }),
    count: LateEventCount.nullable().meta({
      description:
        'Number of events that match the filters; null unless `count` is true, and null if `cursor` is given.',
    }),
    invoices_since: timestampText.meta({
      description:
        'All invoices that became final at or after this instant were read. It is later than `days` before now if these invoices have too many lines.',
    }),
    is_complete: z
      .boolean()
      .meta({ description: 'True if all invoices that became final in the last `days` were read.' }),
    next_cursor: z.string().nullable().meta({ description: '`cursor` of the next page; null on the last one.' }),
  })
  .meta({ id: 'ListLateEventsResponse' });

const LateEventsQuery = z.object({
  event_name: orNull(z.string().trim()).meta({ description: 'Name of the events.' }),
  external_customer_id: orNull(z.string()).meta({ description: 'External id of the customer.' }),
  days: wholeNumber
    .pipe(z.int().min(1).max(DAYS_MAX))
    .default(DAYS_DEFAULT)
    .meta({
      description: `Number of days until now in which the invoices became final, 1 to ${DAYS_MAX}. Default: ${DAYS_DEFAULT}.`,
    }),
  start_time: instantUs.meta({ description: 'Earliest time of receipt, inclusive.' }),
  end_time: instantUs.meta({ description: 'Exclusive end of the times of receipt.' }),
  count: z.stringbool().default(false).meta({ description: 'True to return `count`. Default: false.' }),
  limit: wholeNumber
    .pipe(z.int().min(1).max(1000))
    .default(50)
    .meta({ description: 'Maximum number of events per page, 1 to 1,000. Default: 50.' }),
  cursor: cursorField,
});

export const lateEventRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/late',
    operation_id: 'listLateEvents',
    summary: 'List late events',
    description: `Returns events of a period whose final invoice did not count them, newest receipt first. Each has that invoice and the later invoice that charges it. Reads at most ${LATE_LINES_MAX.toLocaleString('en')} usage lines, with ${LATE_CUSTOMERS_MAX.toLocaleString('en')} customers in all, of the latest final invoices; \`invoices_since\` is the earliest finalization from which all were read. A page may have fewer events than \`limit\`, or none, while \`next_cursor\` is set. Also needs the permission to read invoices. Rules: [Late events](/docs/rules/events.md#late-events).`,
    tag: 'Events',
    access: 'event:read',
    query: LateEventsQuery,
    success: 200,
    answer: ListLateEventsAnswer,
    handle: async ({ query }, context) => {
      const { scope, services, now, response, principal } = context;
      requireRead(principal, 'invoice', 'late events');
      const { days, count: wantsCount, cursor, start_time, end_time, ...wanted } = query;
      const range = checkRange({ start_us: start_time ?? BEGINNING_US, end_us: end_time ?? LAST_INSTANT_US });
      const filters = { ...wanted, received_from_us: range.start_us, received_until_us: range.end_us };
      const since = new Date(toMs(toUs(now.getTime()) - days * US_PER_DAY));
      const after = parsePlaceCursor(cursor);
      const isCounted = wantsCount && after === null;
      // One read serves the page and the count, so that they agree.
      const readMax = isCounted ? Math.max(filters.limit, COUNTED_MAX) : filters.limit;
      const input = { ...filters, since, after, limit: readMax };
      const page = await withBounds(context, (bounds) => listLateEvents(services, scope, { ...input, bounds }));
      const shown = page.events.slice(0, filters.limit);
      const next = page.events.length > shown.length ? shown.at(-1)!.event : page.next;
      const event_count = page.events.length;
      const count = isCounted ? { event_count, has_more: page.next !== null } : null;
      const items = shown.map(({ event, missed }) => {
        const fields = JSON.stringify(completeKeys(LateFields, { invoices: missed.map(showMissed) }));
        return `${fields.slice(0, -1)},${formatEventJson(event, scope).slice(1)}`;
      });
      const rest = {
        count,
        invoices_since: formatUs(toUs(page.invoices_since.getTime())),
        is_complete: page.is_complete,
        next_cursor: next && formatPlaceCursor(next),
      };
      response
        .status(200)
        .type('application/json')
        .send(`{"items":[${items.join(',')}],${JSON.stringify(rest).slice(1)}`);
    },
  }),
];

function showMissed({ line, charged }: MissedLine) {
  return {
    invoice_id: line.invoice_id,
    invoice_number: line.invoice_number,
    finalized_at: line.finalized_at,
    period_start: line.period_start,
    period_end: line.period_end,
    charged_by: charged && {
      invoice_id: charged.invoice_id,
      invoice_number: charged.invoice_number,
      invoice_status: charged.invoice_status,
    },
  };
}
