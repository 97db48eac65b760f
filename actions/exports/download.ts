/** The file of an export, and an address of it that is good for a while (docs/rules/exports.md, "The file"). */
import { notFound } from '../../core/error.ts';
import type { JobConfig } from '../../core/scheduled-task/record.ts';
import type { Scope } from '../../core/scope.ts';
import { readBelow } from '../../integrations/export-destinations/directory.ts';
import { ConnectionModel } from '../../storage/models/connection.ts';
import { ScheduledTaskModel } from '../../storage/models/scheduled-task.ts';
import { TaskModel } from '../../storage/models/task.ts';
import type { Stores } from '../../storage/stores.ts';
import { destinationOf, directoryIn, type ExportSettings, keyOf } from './destinations.ts';

type Asked = { readonly id: string; readonly settings: ExportSettings };
type Postgres = Pick<Stores, 'postgres'>;

/** That of S3 itself; null of a file in the directory of the service, which it sends itself. */
export async function addressOfFile(
  { postgres }: Postgres,
  scope: Scope,
  { id, settings, seconds }: Asked & { seconds: number },
): Promise<string | null> {
  const { task, connection, job_config } = await whereIs(postgres, scope, id);
  return destinationOf(connection, job_config, settings).linkTo(keyOf(task, connection, job_config), seconds);
}

export async function openFile(stores: Postgres, scope: Scope, { id, settings }: Asked) {
  const file = await directoryFileOf(stores, scope, { id, directory: directoryIn(settings) });
  if (file === null) throw notFound('file of task', id);
  return { ...file, name: file.task.file_name! };
}

export type DirectoryFile = Awaited<ReturnType<typeof readBelow>> & Pick<Place, 'task' | 'job_config'>;

/** Null where the file was written elsewhere. */
export async function directoryFileOf(
  { postgres }: Postgres,
  scope: Scope,
  { id, directory }: { id: string; directory: string },
): Promise<DirectoryFile | null> {
  const { task, connection, job_config } = await whereIs(postgres, scope, id);
  if (connection.provider_type !== 'directory') return null;
  return { ...(await readBelow(directory, keyOf(task, connection, job_config))), task, job_config };
}

type Place = { task: TaskModel; connection: ConnectionModel; job_config: JobConfig };

/** 404 where there is no file: not yet, not any more, or because it is no export. */
async function whereIs(database: Postgres['postgres'], scope: Scope, id: string): Promise<Place> {
  const task = await TaskModel.fetchPublished(scope, id, { database });
  if (task.task_type !== 'EXPORT' || task.task_status !== 'COMPLETED') throw notFound('file of task', id);
  const scheduled = await ScheduledTaskModel.fetch(scope, task.scheduled_task_id ?? '', { database });
  const connection = await ConnectionModel.fetch(scope, scheduled.connection_id, { database });
  return { task, connection, job_config: scheduled.job_config };
}
