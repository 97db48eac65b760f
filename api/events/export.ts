/**
 * GET /events/usage/export: usage per customer and meter as CSV, streamed. There is no Content-Length, and what fails on
 * the way breaks the connection: a file that ends in order is whole. The header X-As-Of is for it what `as_of` is for the other
 * questions: no line of it is older.
 */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { stringify } from 'csv-stringify';
import { z } from 'zod';
import { type ExportedUsage, exportUsage } from '../../actions/usage/export-usage.ts';
import { formatUs } from '../../core/time/instant.ts';
import { Turns } from '../../storage/turns.ts';
import { freshness } from '../../storage/usage/usage.ts';
import { textList } from '../http/list.ts';
import { type Context, type Route, route } from '../http/route.ts';
import { anyTimezone, checkedRange, requiredInstantUs, withBounds } from './asked.ts';

const ExportQuery = z.object({
  start_time: requiredInstantUs,
  end_time: requiredInstantUs,
  meter_ids: textList.optional().meta({ description: 'All published meters when absent or empty.' }),
  metadata_columns: textList
    .optional()
    .meta({ description: 'Keys of the customers’ metadata, each a column of its own.', example: 'region,tier' }),
  timezone: anyTimezone,
});
type ExportQuery = z.output<typeof ExportQuery>;

export const exportRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/usage/export',
    operation_id: 'exportUsage',
    summary:
      'Usage per customer and meter as CSV, as fresh as its header X-As-Of says; gzip when the request accepts it',
    tag: 'Events',
    access: 'event:read',
    query: ExportQuery,
    success: 200,
    async handle({ query }, context) {
      const range = checkedRange({ start_us: query.start_time, end_us: query.end_time });
      const { timezone } = query;
      // An empty list is no list, as in the other questions: a file without a line would look like no usage.
      const meter_ids = query.meter_ids?.length ? query.meter_ids : null;
      const as_of = await freshness(context.services, context.now.getTime());
      await withBounds(context, (bounds) => {
        const asked = { ...range, meter_ids, timezone, now: context.now, bounds };
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
    quoted_match: OTHER_DELIMITERS,
  });
  const zips = request.acceptsEncodings('gzip') === 'gzip';
  response.status(200).type('text/csv; charset=utf-8').vary('Accept-Encoding');
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

/**
 * Where spreadsheets cut at these, what follows one would begin a cell, and could be a formula. A line ends at a lone CR or LF as
 * well: RFC 4180 quotes them.
 */
const OTHER_DELIMITERS = /[;\t|\r\n\u0085\u2028\u2029]/;

function columnsOf({ metadata_columns = [] }: ExportQuery): string[] {
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

function lineOf(
  { external_customer_id, customer, meter, usage, event_count }: ExportedUsage,
  query: ExportQuery,
): string[] {
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
    formatUs(query.start_time),
    formatUs(query.end_time),
  ];
}

/**
 * A text that a spreadsheet would take for a formula is made one that it does not; numbers stay as they are. Blanks and what
 * nobody sees (controls, byte order marks, joiners) are passed over before the first sign, as spreadsheets do.
 */
function asText(text: string): string {
  return /^[\s\p{C}\p{Z}\p{M}]*[=+\-@＝＋－＠]|^[\t\r\n]/u.test(text) ? `'${text}` : text;
}
