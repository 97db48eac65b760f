/** The files of exports that a task has written: an address that is good for a while, and what it opens. */
import { z } from 'zod';
import { addressOfFile, openFile } from '../../actions/exports/download.ts';
import { readsOf } from '../../actions/exports/scheduled-tasks.ts';
import { requireRead } from '../../core/access/role.ts';
import { CONTENT_TYPES, EXPORT_ENTITY_TYPES } from '../../core/export/record.ts';
import { onBehalfOf } from '../../storage/caller.ts';
import { TaskModel } from '../../storage/models/task.ts';
import { claimOf, makeLink } from '../http/link.ts';
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
    success: 200,
    answer: z
      .object({ download_url: z.string().meta({ description: 'Where the file is for a quarter of an hour.' }) })
      .meta({ id: 'TaskDownloadResponse' }),
    handle: async ({ params: { id } }, context) => {
      const { services, scope } = context;
      requireReads(await TaskModel.fetch(scope, id, { database: services.postgres }), context);
      const asked = { id, settings: services.config, seconds: LINK_SECONDS };
      return { download_url: (await addressOfFile(services, scope, asked)) ?? (await ownAddress(id, context)) };
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
      const { id, ...scope } = await claimOf(services, params.token, { subject: SUBJECT, now: received_at });
      const file = await onBehalfOf({ scope, user_id: '', secret_id: null, request_id }, () =>
        openFile(services, scope, { id, settings: services.config }),
      );
      const { format, compression } = file.job_config;
      const type = compression === 'gzip' ? 'application/gzip' : CONTENT_TYPES[format];
      context.response.set('Content-Length', String(file.size));
      await sendStream(file.bytes, { type, name: file.name, zips: false }, context);
    },
  }),
];

/** Who may not read the records may not read them in a file. */
function requireReads({ task_type, entity_type }: TaskModel, { principal }: Context): void {
  if (task_type !== 'EXPORT') return;
  const exported = EXPORT_ENTITY_TYPES.find((one) => one.toUpperCase() === entity_type);
  if (exported) for (const entity of readsOf(exported)) requireRead(principal, entity, `an export of ${exported}`);
}

async function ownAddress(id: string, { services, scope, received_at, request }: Context): Promise<string> {
  const { tenant_id, environment_id } = scope;
  const claim = { subject: SUBJECT, tenant_id, environment_id, id };
  const token = await makeLink(services, claim, { seconds: LINK_SECONDS, now: received_at });
  return `${request.protocol}://${request.get('host')}${request.baseUrl}/exports/files/${token}`;
}
