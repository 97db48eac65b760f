/** POST /tasks, /tasks/upload: accept a file whose rows are imported in the background. GET /tasks/{id}/report: the refused rows. */
import { Readable } from 'node:stream';
import { findImportMapping } from '../../../actions/operations/imports/find-mapping.ts';
import { enqueueImport, IMPORTED, type NewImport } from '../../../actions/operations/imports/import-later.ts';
import { previewImport } from '../../../actions/operations/imports/preview-import.ts';
import { openRefusedRows } from '../../../actions/operations/imports/refused-rows.ts';
import { writeCsv } from '../../../actions/reporting/exports/export-file.ts';
import { requireWrite } from '../../../core/foundation/access/role.ts';
import { invalid, notFound } from '../../../core/foundation/error.ts';
import { defineExportColumns } from '../../../core/platform/export/column.ts';
import { checkFileUrl } from '../../../core/platform/import/file-url.ts';
import { type NumberedFault, readFaults } from '../../../storage/models/operations/import-faults.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import { deriveId, requestIdentity } from '../../http/idempotency.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { sendStream, wantsGzip } from '../../http/send-stream.ts';
import { CreateTask, PreviewAnswer, PreviewQuery, TaskAnswer, UploadQuery } from './schema.ts';

const tag = 'Tasks';
/** The task id is derived from the key and the bytes, so a repeated request finds its task. */
const once = 'same';

const UPLOADED = {
  'text/csv': 'external_id,name\nacme,Acme Inc.\n',
  'application/json': [{ external_id: 'acme', name: 'Acme Inc.' }],
  'application/x-ndjson': '{"external_id":"acme","name":"Acme Inc."}\n',
};

export const importRoutes: Route[] = [
  route({
    method: 'post',
    path: '/tasks',
    operation_id: 'createTask',
    summary: 'Import a file from a URL',
    description:
      'Imports events, customers, features or prices from a CSV or JSON file; also needs permission to write ' +
      'these records. The file is downloaded and imported in the background: `GET /tasks/{id}` shows the ' +
      'progress, `GET /tasks/{id}/report` the refused rows. Addresses that are not public are refused: ' +
      '[imports](/docs/rules/imports.md).',
    tag,
    access: 'task:write',
    body: CreateTask,
    success: 202,
    answer: TaskAnswer,
    idempotency: once,
    handle: ({ body: { file_url, task_type, ...fields } }, context) => {
      if (task_type !== 'IMPORT') throw invalid('task_type', 'must be IMPORT: an export is asked for at its own place');
      checkFileUrl(file_url, context.services.config.IMPORT_ALLOWED_ADDRESSES);
      return begin({ ...fields, file: { url: file_url } }, context);
    },
  }),
  route({
    method: 'post',
    path: '/tasks/upload',
    operation_id: 'uploadTask',
    summary: 'Import an uploaded file',
    description:
      'Imports the body of the request: a file of up to 32 MiB. `entity_type`, `file_type` and `mapping` define its ' +
      'content; `same_file_as` of the answer names an earlier import of the same bytes. A content type that is not listed below is refused. Otherwise equal to `POST /tasks`.',
    tag,
    access: 'task:write',
    query: UploadQuery,
    takes_file: UPLOADED,
    raw_body: true,
    success: 202,
    answer: TaskAnswer,
    idempotency: once,
    handle: ({ query }, context) => {
      const bytes: Buffer = context.request.body;
      if (bytes.length === 0) throw invalid('body', 'is required: the file');
      return begin({ ...query, metadata: null, file: { bytes } }, context);
    },
  }),
  route({
    method: 'post',
    path: '/tasks/upload/preview',
    operation_id: 'previewTaskUpload',
    summary: 'Try an import',
    description:
      'Reads the first 1,000 rows of the body as an import would, and writes nothing. Returns the first rows as ' +
      'events or requests, and the first refusals. Conflicts with existing records are not checked.',
    tag,
    access: 'task:read',
    query: PreviewQuery,
    takes_file: UPLOADED,
    raw_body: true,
    success: 200,
    answer: PreviewAnswer,
    handle: async ({ query }, context) => {
      const { services, scope, request } = context;
      if (request.body.length === 0) throw invalid('body', 'is required: the file');
      const mapping = await findImportMapping(services, scope, query);
      return previewImport(services, scope, { ...query, mapping, bytes: request.body });
    },
  }),
  route({
    method: 'get',
    path: '/tasks/:id/refused',
    operation_id: 'getTaskRefusedRows',
    summary: 'Download the refused rows for correction',
    description:
      'Returns the refused rows of an import as they were, for a week: a CSV with a first column `refused_reason`, ' +
      'or a JSON object per line with this first key. A row that is no object is the text `refused_row`. The file can ' +
      'be corrected and imported again with the same mapping; the reason is ignored.',
    tag,
    access: 'task:read',
    params: idParams,
    success: 200,
    file_type: 'text/csv',
    other_file_types: ['application/x-ndjson'],
    handle: async ({ params }, context) => {
      const { scope, services } = context;
      const task = await TaskModel.fetch(scope, params.id, { database: services.postgres });
      const rows = await openRefusedRows(services, scope, task);
      if (task.file_type === 'CSV') return sendCsv(rows, `${task.id}-refused.csv`, context);
      const name = `${task.id}-refused.ndjson`;
      await sendStream(Readable.from(rows), { type: 'application/x-ndjson', name, zips: wantsGzip(context) }, context);
    },
  }),
  route({
    method: 'get',
    path: '/tasks/:id/report',
    operation_id: 'getTaskReport',
    summary: 'Download the reasons of refusals',
    description:
      'Returns a CSV file with one record per refused row of an import: the row as a spreadsheet numbers it (in JSON ' +
      'from 1), the field, the error code and the message. For a running import it contains the rows so far.',
    tag,
    access: 'task:read',
    params: idParams,
    success: 200,
    file_type: 'text/csv',
    handle: async ({ params }, context) => {
      const { scope, services } = context;
      const task = await TaskModel.fetch(scope, params.id, { database: services.postgres });
      if (task.task_type !== 'IMPORT') throw notFound('import', params.id);
      const bytes = writeCsv(REPORT_COLUMNS, readFaults(scope, task.id, services.postgres));
      await sendCsv(bytes, `${task.id}.csv`, context);
    },
  }),
];

function sendCsv(bytes: AsyncIterable<Uint8Array>, name: string, context: Context): Promise<void> {
  const file = { type: 'text/csv; charset=utf-8', name, zips: wantsGzip(context) };
  return sendStream(Readable.from(bytes), file, context);
}

type ImportInput = Omit<NewImport, 'id' | 'author' | 'mapping'> & { readonly mapping: string | null };

async function begin(input: ImportInput, context: Context): Promise<TaskModel> {
  const { services, scope, principal } = context;
  const entity = IMPORTED[input.entity_type];
  requireWrite(principal, entity, `an import of ${input.entity_type}`);
  const request = requestIdentity(context);
  const id = request === null ? undefined : deriveId('task', request);
  const mapping = await findImportMapping(services, scope, input);
  return enqueueImport(services, scope, { ...input, mapping, id, author: toAuthor(context) });
}

const { text, word, integer } = defineExportColumns<NumberedFault>();

const REPORT_COLUMNS = [
  integer('row', ({ row_number }) => row_number),
  text('field', ({ field }) => field),
  word('code', ({ code }) => code),
  text('message', ({ message }) => message),
];
