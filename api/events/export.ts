/**
 * GET /events/usage/export: usage per customer and meter, or per charge with its amount, as CSV, streamed. There is no Content-Length, and what fails on
 * the way breaks the connection: a file that ends in order is whole. The header X-As-Of is for it what `as_of` is for the other
 * questions: no line of it is older.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { stringify } from 'csv-stringify';
import { type ExportedUsage, exportUsage } from '../../actions/usage/export-usage.ts';
import { requireRead } from '../../core/access/role.ts';
import { formatUs } from '../../core/time/instant.ts';
import { Turns } from '../../storage/turns.ts';
import { freshness } from '../../storage/usage/usage.ts';
import { type Context, type Route, route } from '../http/route.ts';
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

async function send(records: AsyncGenerator<ExportedUsage>, query: ExportQuery, { request, response, log }: Context) {
  // Whatever goes wrong before the first record is still an answer with a status.
  const first = await records.next();
  const lines = Readable.from(linesOf(first, records, query));
  const csv = stringify({
    header: true,
    columns: columnsOf(query),
    record_delimiter: '\r\n',
    bom: query.bom ?? isBrowser(request),
    quoted_match: OTHER_DELIMITERS,
  });
  const zips = request.acceptsEncodings('gzip') === 'gzip';
  response.status(200).type('text/csv; charset=utf-8').vary('Accept-Encoding').vary('User-Agent');
  response.set('Content-Disposition', 'attachment; filename="usage.csv"');
  if (zips) response.set('Content-Encoding', 'gzip');
  try {
    await (zips ? pipeline(lines, csv, createGzip(), response) : pipeline(lines, csv, response));
  } catch (error) {
    if (!response.headersSent) throw error;
    response.destroy();
    const left = (error as { code?: string }).code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (left) log.info('the caller left before the end of the export');
    else log.error({ err: error }, 'an export failed on the way');
  }
}

/** Every browser begins its name so, and no client of an interface does: there a person saves the file and opens it. */
function isBrowser(request: Context['request']): boolean {
  return /^Mozilla\//.test(request.get('user-agent') ?? '');
}

/**
 * Where spreadsheets cut at these, what follows one would begin a cell, and could be a formula. A line ends at a lone CR or LF as
 * well: RFC 4180 quotes them.
 */
const OTHER_DELIMITERS = /[;\t|\r\n\u0085\u2028\u2029]/;

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
    asText(external_customer_id),
    asText(customer?.name ?? ''),
    ...(query.metadata_columns ?? []).map((key) => asText(own(key))),
    meter.id,
    asText(meter.name),
    asText(meter.event_name),
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
    asText(plan),
    asText(line),
    price,
    amount.toFixed(),
    currency,
    invoice?.id ?? '',
    asText(invoice?.number ?? ''),
    invoice?.status ?? '',
  ];
}

/**
 * A text that a spreadsheet would take for a formula is made one that it does not; numbers stay as they are. Blanks and what
 * nobody sees (controls, byte order marks, joiners) are passed over before the first sign, as spreadsheets do. So is what stands
 * behind another delimiter, where a spreadsheet that cuts there begins a cell: quotes do not keep it from that.
 */
function asText(text: string): string {
  const safe = text.replace(INNER_FORMULA, "$1'");
  return /^[\s\p{C}\p{Z}\p{M}]*[=+\-@＝＋－＠]|^[\t\r\n]/u.test(safe) ? `'${safe}` : safe;
}

const INNER_FORMULA = /([;\t|\r\n\u0085\u2028\u2029])(?=[\s\p{C}\p{Z}\p{M}]*[=+\-@＝＋－＠])/gu;
