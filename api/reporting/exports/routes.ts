/** Exports on demand: the answer is the file. */
import { Readable } from 'node:stream';
import { buildExportFile } from '../../../actions/reporting/exports/export-file.ts';
import { type ExportKind, listRequiredReads } from '../../../actions/reporting/exports/export-kind.ts';
import { EXPORT_KINDS } from '../../../actions/reporting/exports/kinds.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { FarthingError, invalid } from '../../../core/foundation/error.ts';
import { type Microseconds, toUs } from '../../../core/foundation/time/instant.ts';
import type { RequestedRange } from '../../../core/foundation/time/range.ts';
import {
  checkMetadataFields,
  METADATA_FIELDS_MAX,
  type MetadataField,
} from '../../../core/platform/export/metadata-field.ts';
import { checkExportRange } from '../../../core/platform/export/range.ts';
import { CONTENT_TYPES, EXTENSIONS, type InstantFormat } from '../../../core/platform/export/record.ts';
import { loadFreshness } from '../../../storage/usage/usage.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { isBrowser, sendStream, wantsGzip } from '../../http/send-stream.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';
import { ExportFileQuery, exportParams } from './schema.ts';

export const exportFileRoutes: Route[] = [
  route({
    method: 'get',
    path: '/exports/:entity_type',
    operation_id: 'exportRecords',
    summary: 'Export records as a file',
    description:
      'Streams the records of a range of at most a year, or all customers or subscriptions, as a file of any length. The header X-As-Of states the freshness. If the connection ends without an error, the file is complete. The permission to read the records is required too. More than three exports of a tenant at a time are refused with 429.',
    tag: 'Tasks',
    access: 'task:read',
    params: exportParams,
    query: ExportFileQuery,
    success: 200,
    file_type: 'text/csv',
    other_file_types: ['application/vnd.apache.parquet', 'application/gzip'],
    handle: ({ params, query }, context) => {
      const kind: ExportKind = EXPORT_KINDS[params.entity_type];
      const options = { kind, name: params.entity_type, query, fields: toMetadataFields(query, kind) };
      for (const entity of listRequiredReads(kind, options.fields))
        requireRead(context.principal, entity, `an export of ${options.name}`);
      return limitConcurrentExports(context.scope.tenant_id, () => answerFile(options, context));
    },
  }),
];

type ExportFileInput = { kind: ExportKind; name: string; query: ExportFileQuery; fields: readonly MetadataField[] };

async function answerFile({ kind, name, query, fields }: ExportFileInput, context: Context): Promise<void> {
  const { services, scope, now, response } = context;
  const range = toExportRange(query, kind, toUs(now.getTime()));
  const as_of = await loadFreshness(services, scope, now.getTime());
  await withBounds(context, async ({ signal }) => {
    const { format, compression } = query;
    const text = { bom: hasMark(query, context), instants: toInstantFormat(query) };
    const options = { ...range, ...text, now, fields, format, compression, signal };
    const { bytes } = buildExportFile(services, scope, kind, options);
    response.set('X-As-Of', as_of).vary('User-Agent');
    const packed = compression === 'gzip';
    const type = packed ? 'application/gzip' : CONTENT_TYPES[format];
    const file = { type, name: `${name}.${EXTENSIONS[format]}${packed ? '.gz' : ''}` };
    const zips = !packed && format === 'CSV' && wantsGzip(context);
    await sendStream(Readable.from(bytes), { ...file, zips }, context);
  });
}

function hasMark({ bom, format }: ExportFileQuery, context: Context): boolean {
  if (format === 'CSV') return bom ?? isBrowser(context);
  if (bom) throw invalid('bom', 'is of CSV alone');
  return false;
}

function toInstantFormat({ format, instant_format }: ExportFileQuery): InstantFormat {
  if (format !== 'CSV' && instant_format !== 'rfc3339') throw invalid('instant_format', 'is of CSV alone');
  return instant_format;
}

/** The range of an export of all records is unused. */
function toExportRange(
  { start_time, end_time }: ExportFileQuery,
  kind: ExportKind,
  now_us: Microseconds,
): RequestedRange {
  if (kind.is_whole) {
    const field = start_time !== null ? 'start_time' : end_time !== null ? 'end_time' : null;
    if (field) throw invalid(field, 'is refused: these records are exported as a whole');
    return { start_us: now_us, end_us: now_us };
  }
  if (start_time === null) throw invalid('start_time', 'is required');
  return checkExportRange({ start_us: start_time, end_us: end_time ?? now_us }, now_us);
}

function toMetadataFields(
  { customer_metadata = [], wallet_metadata = [] }: ExportFileQuery,
  kind: ExportKind,
): MetadataField[] {
  for (const [parameter, keys] of Object.entries({ customer_metadata, wallet_metadata })) {
    const twice = keys.find((key, at) => keys.indexOf(key) !== at);
    if (twice !== undefined) throw invalid(parameter, `names ${twice} twice`);
  }
  const named = (entity_type: 'customer' | 'wallet') => (field_key: string) =>
    ({ entity_type, field_key, column_name: `${entity_type}.metadata.${field_key}` }) as const;
  const fields = [...customer_metadata.map(named('customer')), ...wallet_metadata.map(named('wallet'))];
  if (fields.length > METADATA_FIELDS_MAX)
    throw invalid('customer_metadata', `there are ${METADATA_FIELDS_MAX} columns of metadata at most`);
  if (wallet_metadata.length > 0 && !kind.about.includes('wallet'))
    throw invalid('wallet_metadata', 'these records are not about a wallet');
  checkMetadataFields(fields, {
    about: kind.about,
    names: kind.columns.map(({ name }) => name),
    field: 'customer_metadata',
  });
  return fields;
}

/** Maximum number of concurrent exports per tenant and process, because a client that reads slowly makes its export take long. */
const AT_ONCE = 3;
const running = new Map<string, number>();

async function limitConcurrentExports(tenant_id: string, work: () => Promise<void>): Promise<void> {
  const now = running.get(tenant_id) ?? 0;
  if (now >= AT_ONCE)
    throw new FarthingError('too_many_requests', `${AT_ONCE} exports are sent at a time: wait until one has ended`);
  running.set(tenant_id, now + 1);
  try {
    await work();
  } finally {
    const left = running.get(tenant_id)! - 1;
    if (left === 0) running.delete(tenant_id);
    else running.set(tenant_id, left);
  }
}
