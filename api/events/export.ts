/**
 * GET /events/usage/export: usage per customer and meter, or per charge with its amount, as CSV, streamed. There is no Content-Length, and what fails on
 * the way breaks the connection: a file that ends in order is whole. The header X-As-Of is for it what `as_of` is for the other
 * questions: no line of it is older.
 */
import { pipeline, Readable } from 'node:stream';
import { stringify } from 'csv-stringify';
import { type ExportedUsage, exportUsage } from '../../actions/usage/export-usage.ts';
import { requireRead } from '../../core/access/role.ts';
import { defused, OTHER_DELIMITERS } from '../../core/export/csv.ts';
import { formatUs } from '../../core/time/instant.ts';
import { Turns } from '../../storage/turns.ts';
import { freshness } from '../../storage/usage/usage.ts';
import { type Context, type Route, route } from '../http/route.ts';
import { isBrowser, sendStream, wantsGzip } from '../http/send-stream.ts';
import { withBounds } from './asked.ts';
import { ExportQuery, exportRange } from './export-query.ts';

export const exportRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/usage/export',
    operation_id: 'exportUsage',
    summary:
      'Usage per customer and meter as CSV, as fresh as its header X-As-Of says; gzip when the request accepts it',
    description:
      'One record per customer and meter with events in the range; with `amounts=true` one per charge, with what is charged for it and on which invoice, which takes the permission to read invoices. A connection that ends in order has sent the whole file.',
    tag: 'Events',
    access: 'event:read',
    query: ExportQuery,
    success: 200,
    file_type: 'text/csv',
    async handle({ query }, context) {
      const range = exportRange(query);
      const { timezone, split, amounts = false } = query;
      if (amounts) requireRead(context.principal, 'invoice', 'an export with amounts');
      // An empty list is no list, as in the other questions: a file without a line would look like no usage.
      const meter_ids = query.meter_ids?.length ? query.meter_ids : null;
      const as_of = await freshness(context.services, context.scope, context.now.getTime());
      await withBounds(context, (bounds) => {
        const asked = { ...range, meter_ids, timezone, split, amounts, now: context.now, bounds };
        context.response.set('X-As-Of', as_of);
        return send(exportUsage(context.services, context.scope, asked), query, context);
      });
    },
  }),
];

async function send(records: AsyncGenerator<ExportedUsage>, query: ExportQuery, context: Context) {
  // Whatever goes wrong before the first record is still an answer with a status.
  const first = await records.next();
  const lines = Readable.from(linesOf(first, records, query));
  const csv = stringify({
    header: true,
    columns: columnsOf(query),
    record_delimiter: '\r\n',
    bom: query.bom ?? isBrowser(context),
    quoted_match: OTHER_DELIMITERS,
  });
  // What goes wrong between the records reaches the end of the CSV, and whoever sends it.
  pipeline(lines, csv, () => undefined);
  context.response.vary('User-Agent');
  const file = { type: 'text/csv; charset=utf-8', name: 'usage.csv', zips: wantsGzip(context) };
  await sendStream(csv, file, context);
}

const AMOUNT_COLUMNS = [
  'subscription_id',
  'plan',
  'line',
  'price',
  'amount',
  'currency',
  'invoice_id',
  'invoice_number',
  'invoice_status',
];

function columnsOf({ metadata_columns = [], amounts = false }: ExportQuery): string[] {
  return [
    'external_customer_id',
    'customer_name',
    ...metadata_columns.map((key) => `metadata.${key}`),
    'meter_id',
    'meter_name',
    'event_name',
    'aggregation',
    'usage',
    'event_count',
    'start_time',
    'end_time',
    ...(amounts ? AMOUNT_COLUMNS : []),
  ];
}

/** Without the turns, lines that the store has given at once would be written at once. */
async function* linesOf(
  first: IteratorResult<ExportedUsage, void>,
  records: AsyncGenerator<ExportedUsage>,
  query: ExportQuery,
): AsyncGenerator<string[]> {
  if (first.done) return;
  const turns = new Turns(first.value.meter.tenant_id);
  yield lineOf(first.value, query);
  for await (const record of records) {
    yield lineOf(record, query);
    if (turns.isOver()) await turns.next();
  }
}

function lineOf(record: ExportedUsage, query: ExportQuery): string[] {
  const { external_customer_id, customer, meter, usage, event_count, start_us, end_us } = record;
  const metadata: Readonly<Record<string, string>> = customer?.metadata ?? {};
  const own = (key: string) => (Object.hasOwn(metadata, key) ? metadata[key]! : '');
  return [
    defused(external_customer_id),
    defused(customer?.name ?? ''),
    ...(query.metadata_columns ?? []).map((key) => defused(own(key))),
    meter.id,
    defused(meter.name),
    defused(meter.event_name),
    meter.aggregation.type,
    usage.toFixed(),
    String(event_count),
    formatUs(start_us),
    formatUs(end_us),
    ...(query.amounts ? amountCells(record) : []),
  ];
}

/** Nothing, and no 0, where nobody charges for it. */
function amountCells({ charge }: ExportedUsage): string[] {
  if (charge === null) return AMOUNT_COLUMNS.map(() => '');
  const { subscription_id, plan, line, price, amount, currency, invoice } = charge;
  return [
    subscription_id,
    defused(plan),
    defused(line),
    price,
    amount.toFixed(),
    currency,
    invoice?.id ?? '',
    defused(invoice?.number ?? ''),
    invoice?.status ?? '',
  ];
}
