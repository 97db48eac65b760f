/**
 * GET /events/usage/export: usage per customer and meter, or per charge with its amount, as streamed CSV. There is no Content-Length.
 * An error during the stream breaks the connection, so a file whose connection ends without an error is complete. The header X-As-Of has
 * the meaning of `as_of` in other answers: every event accepted before it is counted.
 */
import { Readable } from 'node:stream';
import { writeCsv } from '../../../actions/reporting/exports/export-file.ts';
import { type ExportedUsage, exportUsage } from '../../../actions/reporting/usage/export-usage.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { defineExportColumns, type ExportColumn } from '../../../core/platform/export/column.ts';
import { TimeSlicer } from '../../../storage/concurrency/time-slicer.ts';
import { loadFreshness } from '../../../storage/usage/usage.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { isBrowser, sendStream, wantsGzip } from '../../http/send-stream.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';
import { ExportQuery, exportRange } from './export-query.ts';

export const exportRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/usage/export',
    operation_id: 'exportUsage',
    summary: 'Export usage as CSV',
    description:
      'Returns one record per customer and meter with events in the range. With `amounts=true` it returns one record per charge, with its amount and invoice, which needs the permission to read invoices. The header X-As-Of states the freshness. The file is compressed with gzip if the request accepts it. If the connection ends without an error, the file is complete.',
    tag: 'Events',
    access: 'event:read',
    query: ExportQuery,
    success: 200,
    file_type: 'text/csv',
    async handle({ query }, context) {
      const range = exportRange(query);
      const { timezone, split, amounts = false } = query;
      if (amounts) requireRead(context.principal, 'invoice', 'an export with amounts');
      // An empty list counts as absent, as in other queries: a file without records would suggest that there is no usage.
      const meter_ids = query.meter_ids?.length ? query.meter_ids : null;
      const as_of = await loadFreshness(context.services, context.scope, context.now.getTime());
      await withBounds(context, (bounds) => {
        const options = { ...range, meter_ids, timezone, split, amounts, now: context.now, bounds };
        context.response.set('X-As-Of', as_of);
        return send(exportUsage(context.services, context.scope, options), query, context);
      });
    },
  }),
];

async function send(records: AsyncGenerator<ExportedUsage>, query: ExportQuery, context: Context) {
  // An error before the first record still returns an error status.
  const first = await records.next();
  const options = { bom: query.bom ?? isBrowser(context), instants: query.instant_format };
  const bytes = writeCsv(columnsFor(query), yieldRecords(first, records), options);
  context.response.vary('User-Agent');
  const file = { type: 'text/csv; charset=utf-8', name: 'usage.csv', zips: wantsGzip(context) };
  await sendStream(Readable.from(bytes), file, context);
}

/** Yields after each time quantum: otherwise all records that the store returned together would be written without a pause. */
async function* yieldRecords(
  first: IteratorResult<ExportedUsage, void>,
  records: AsyncGenerator<ExportedUsage>,
): AsyncGenerator<ExportedUsage> {
  if (first.done) return;
  const timeSlicer = new TimeSlicer(first.value.meter.tenant_id);
  yield first.value;
  for await (const record of records) {
    yield record;
    if (timeSlicer.isOver()) await timeSlicer.next();
  }
}

const { text, word, decimal, integer, instant } = defineExportColumns<ExportedUsage>();

function columnsFor({ metadata_columns = [], amounts = false }: ExportQuery): ExportColumn<ExportedUsage>[] {
  return [
    text('external_customer_id', ({ external_customer_id }) => external_customer_id),
    text('customer_name', ({ customer }) => customer?.name ?? null),
    ...metadata_columns.map((key) => text(`metadata.${key}`, (record) => metadataValue(record, key))),
    word('meter_id', ({ meter }) => meter.id),
    text('meter_name', ({ meter }) => meter.name),
    text('event_name', ({ meter }) => meter.event_name),
    word('aggregation', ({ meter }) => meter.aggregation.type),
    decimal('usage', ({ usage }) => usage.toFixed()),
    integer('event_count', ({ event_count }) => event_count),
    instant('start_time', ({ start_us }) => start_us),
    instant('end_time', ({ end_us }) => end_us),
    ...(amounts ? AMOUNT_COLUMNS : []),
  ];
}

function metadataValue({ customer }: ExportedUsage, key: string): string | null {
  const metadata: Readonly<Record<string, string>> = customer?.metadata ?? {};
  return Object.hasOwn(metadata, key) ? metadata[key]! : null;
}

/** Columns of amounts. They are empty, not 0, for usage that no line charges. */
const AMOUNT_COLUMNS = [
  word('subscription_id', ({ charge }) => charge?.subscription_id ?? null),
  text('plan', ({ charge }) => charge?.plan ?? null),
  text('line', ({ charge }) => charge?.line ?? null),
  text('price', ({ charge }) => charge?.price ?? null),
  decimal('amount', ({ charge }) => charge?.amount.toFixed() ?? null),
  word('currency', ({ charge }) => charge?.currency ?? null),
  word('invoice_id', ({ charge }) => charge?.invoice?.id ?? null),
  text('invoice_number', ({ charge }) => charge?.invoice?.number ?? null),
  word('invoice_status', ({ charge }) => charge?.invoice?.status ?? null),
];
