/** Files of exports that a task has written: a temporary link, and the route that sends the file. */
import { z } from 'zod';
import { createFileLink, openFile } from '../../../actions/reporting/exports/download.ts';
import { listScheduleReads } from '../../../actions/reporting/exports/scheduled-tasks.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { CONTENT_TYPES } from '../../../core/platform/export/record.ts';
import { runAs } from '../../../storage/foundation/request-context.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import { makeLink, verifyLink } from '../../http/link.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { sendStream } from '../../http/send-stream.ts';

const SUBJECT = 'export_file';
const LINK_SECONDS = 900;

export const downloadRoutes: Route[] = [
  route({
    method: 'get',
    path: '/tasks/:id/download',
    operation_id: 'downloadTaskExport',
    summary: 'Get a link to an export',
    description:
      'Returns a link to the file, which anybody may open for 15 minutes. A task without a file is answered with 404: a task that has not ended, or an import.',
    tag: 'Tasks',
    access: 'task:read',
    params: idParams,
    query: z.object({
      part: z.coerce.number().int().min(1).optional().meta({
        description: 'Number of the part, from 1. It is required if the file has several parts (`files` of the task).',
        example: 1,
      }),
    }),
    success: 200,
    answer: z
      .object({ download_url: z.string().meta({ description: 'Link to the file, valid for 15 minutes.' }) })
      .meta({ id: 'TaskDownloadResponse' }),
    handle: async ({ params: { id }, query: { part = null } }, context) => {
      const { services, scope } = context;
      await requireReads(await TaskModel.fetch(scope, id, { database: services.postgres }), context);
      const input = { id, part, settings: services.config, seconds: LINK_SECONDS };
      return { download_url: (await createFileLink(services, scope, input)) ?? (await ownAddress(input, context)) };
    },
  }),
  route({
    method: 'get',
    path: '/exports/files/:token',
    operation_id: 'getExportFile',
    summary: 'Open an export file by link',
    description:
      'Sends the file of a link from `GET /tasks/{id}/download`. The link needs no key and is valid for 15 minutes.',
    tag: 'Tasks',
    access: 'public',
    params: z.object({ token: z.string().max(2000).meta({ description: 'Token from the link.' }) }),
    success: 200,
    file_type: 'text/csv',
    other_file_types: ['application/vnd.apache.parquet', 'application/gzip'],
    handle: async ({ params }, context) => {
      const { services, received_at, request_id } = context;
      const {
        id,
        part = null,
        subject: _,
        ...scope
      } = await verifyLink(services, params.token, { subjects: [SUBJECT], now: received_at });
      const file = await runAs({ scope, user_id: '', secret_id: null, request_id }, () =>
        openFile(services, scope, { id, part, settings: services.config }),
      );
      const { format, compression } = file.job_config;
      const type = compression === 'gzip' ? 'application/gzip' : CONTENT_TYPES[format];
      await sendStream(file.bytes, { type, name: file.name, zips: false, size_bytes: file.size }, context);
    },
  }),
];

/** A file of records requires the permission to read these records. */
async function requireReads({ task_type, scheduled_task_id }: TaskModel, context: Context): Promise<void> {
  if (task_type !== 'EXPORT') return;
  const { principal, scope, services } = context;
  const scheduled = await ScheduledTaskModel.fetch(scope, scheduled_task_id ?? '', { database: services.postgres });
  for (const entity of listScheduleReads(scheduled))
    requireRead(principal, entity, `an export of ${scheduled.entity_type}`);
}

type OwnFile = { readonly id: string; readonly part: number | null };

async function ownAddress({ id, part }: OwnFile, { services, scope, received_at, request }: Context): Promise<string> {
  const { tenant_id, environment_id } = scope;
  const claim = { subject: SUBJECT, tenant_id, environment_id, id, part: part ?? undefined };
  const token = await makeLink(services, claim, { seconds: LINK_SECONDS, now: received_at });
  return `${request.protocol}://${request.get('host')}${request.baseUrl}/exports/files/${token}`;
}
