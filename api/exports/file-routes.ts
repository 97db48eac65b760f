/** The files of exports that a task has written: an address that is good for a while, and what it opens. */
import { z } from 'zod';
import { createFileLink, openFile } from '../../actions/exports/download.ts';
import { listScheduleReads } from '../../actions/exports/scheduled-tasks.ts';
import { requireRead } from '../../core/access/role.ts';
import { CONTENT_TYPES } from '../../core/export/record.ts';
import { ScheduledTaskModel } from '../../storage/models/scheduled-task.ts';
import { TaskModel } from '../../storage/models/task.ts';
import { runAs } from '../../storage/request-context.ts';
import { makeLink, verifyLink } from '../http/link.ts';
import { type Context, idParams, type Route, route } from '../http/route.ts';
import { sendStream } from '../http/send-stream.ts';

const SUBJECT = 'export_file';
const LINK_SECONDS = 900;

export const downloadRoutes: Route[] = [
  route({
    method: 'get',
    path: '/tasks/:id/download',
    operation_id: 'downloadTaskExport',
    summary: 'An address of the file of an export',
    description:
      'Anybody may open it for a quarter of an hour. Of a task that has no file it is not found: one that has not ended, or is no export.',
    tag: 'Tasks',
    access: 'task:read',
    params: idParams,
    query: z.object({
      part: z.coerce.number().int().min(1).optional().meta({
        description: 'Of a file in several parts (`files` of the task): which one, from 1.',
        example: 1,
      }),
    }),
    success: 200,
    answer: z
      .object({ download_url: z.string().meta({ description: 'Where the file is for a quarter of an hour.' }) })
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
    summary: 'Open the file of an export by its address',
    description:
      'The address comes from `GET /tasks/{id}/download`. It needs no key, and is good for a quarter of an hour.',
    tag: 'Tasks',
    access: 'public',
    params: z.object({ token: z.string().max(2000).meta({ description: 'As it stands in the address.' }) }),
    success: 200,
    file_type: 'text/csv',
    handle: async ({ params }, context) => {
      const { services, received_at, request_id } = context;
      const {
        id,
        part = null,
        ...scope
      } = await verifyLink(services, params.token, { subject: SUBJECT, now: received_at });
      const file = await runAs({ scope, user_id: '', secret_id: null, request_id }, () =>
        openFile(services, scope, { id, part, settings: services.config }),
      );
      const { format, compression } = file.job_config;
      const type = compression === 'gzip' ? 'application/gzip' : CONTENT_TYPES[format];
      context.response.set('Content-Length', String(file.size));
      await sendStream(file.bytes, { type, name: file.name, zips: false }, context);
    },
  }),
];

/** Who may not read the records may not read them in a file. */
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
