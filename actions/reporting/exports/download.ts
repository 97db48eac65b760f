/** Serves the file of an export and creates temporary links to it (docs/rules/exports.md, "The file"). */
import { invalid, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { JobConfig } from '../../../core/platform/scheduled-task/record.ts';
import type { Task } from '../../../core/platform/task/record.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import {
  createDestination,
  type ExportSettings,
  findExportCapability,
  formatFileKey,
  formatFileName,
} from './destinations.ts';

type StoredFileQuery = {
  readonly id: string;
  /** Part of a file in parts; null if the request names none. */
  readonly part: number | null;
  readonly settings: ExportSettings;
};

/** Returns a link; null for a file on this machine, which the service sends itself. */
export async function createFileLink(
  { postgres }: Postgres,
  scope: Scope,
  { id, part, settings, seconds }: StoredFileQuery & { seconds: number },
): Promise<string | null> {
  const { task, connection, job_config } = await loadExportLocation(postgres, scope, id);
  const which = selectPart(task, part);
  const key = formatFileKey(task, connection, { job_config, which });
  return createDestination(connection, job_config, settings).linkTo(key, seconds);
}

/** Opens a file; error 404 if the file was written to another destination. */
export async function openFile({ postgres }: Postgres, scope: Scope, { id, part, settings }: StoredFileQuery) {
  const { task, connection, job_config } = await loadExportLocation(postgres, scope, id);
  const { openFile: open } = findExportCapability(connection);
  if (!open) throw notFound('file of task', id);
  const which = selectPart(task, part);
  const file = await open(settings, formatFileKey(task, connection, { job_config, which }));
  return { ...file, job_config, name: formatFileName(task, job_config, which) };
}

/** Selects the part. A file in several parts requires `part`; otherwise a part could be mistaken for the whole file. */
function selectPart({ id, files }: TaskModel, part: number | null): number | null {
  if (files === null) {
    if (part !== null) throw invalid('part', 'the file is not in parts');
    return null;
  }
  if (part === null && files.length > 1)
    throw invalid('part', `is required: the file is in ${files.length} parts`, { files: files.length });
  if (part !== null && part > files.length) throw notFound(`part ${part} of the file of task`, id);
  return part ?? 1;
}

export type StoredFile = Pick<Task, 'size_bytes' | 'sha256' | 'file_name'> & {
  readonly is_local: boolean;
  read(signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
};

/** Lists the file of a task, or its parts, with the facts recorded when they were written. */
export async function listStoredFiles(
  { postgres }: Postgres,
  scope: Scope,
  { id, settings }: Pick<StoredFileQuery, 'id' | 'settings'>,
): Promise<StoredFile[]> {
  const { task, connection, job_config } = await loadExportLocation(postgres, scope, id);
  const { file_name, size_bytes, sha256 } = task;
  return (task.files ?? [{ part: null, file_name, size_bytes, sha256 }]).map(({ part, ...fileFacts }) => ({
    ...fileFacts,
    is_local: findExportCapability(connection).openFile !== undefined,
    read: async (signal) =>
      createDestination(connection, job_config, settings).read(
        formatFileKey(task, connection, { job_config, which: part }),
        signal,
      ),
  }));
}

type ExportLocation = { task: TaskModel; connection: ConnectionModel; job_config: JobConfig };

/** Loads the location of the export. Error 404 if there is no file: it is not written yet, it was deleted, or the task is no export. */
async function loadExportLocation(database: Postgres['postgres'], scope: Scope, id: string): Promise<ExportLocation> {
  const task = await TaskModel.fetchPublished(scope, id, { database });
  if (task.task_type !== 'EXPORT' || task.task_status !== 'COMPLETED') throw notFound('file of task', id);
  const scheduled = await ScheduledTaskModel.fetch(scope, task.scheduled_task_id ?? '', { database });
  const connection = await ConnectionModel.fetch(scope, scheduled.connection_id, { database });
  return { task, connection, job_config: scheduled.job_config };
}
