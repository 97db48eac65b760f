/**
 * Performs an export: writes the file, then makes it visible (`commit`) and completes the task in one transaction under the task's lock.
 * An aborted attempt leaves nothing visible; the next one starts from the beginning. Of two concurrent attempts the first to finish counts
 * (docs/rules/exports.md, "Whole or not there").
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import { moveTask } from '../../../core/platform/task/record.ts';
import { isRetryable } from '../../../core/platform/workflow/record.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import type { CutParts } from '../../../storage/models/reporting/export-cuts.ts';
import { deleteParts } from '../../../storage/models/reporting/export-parts.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import {
  completeRun,
  lockRun,
  moveRun,
  type RunAttempt,
  type RunReference,
  tryRun,
} from '../../foundation/workflows/run.ts';
import { checkUsageCounted, parseInstantUs } from './counted.ts';
import { loadCutParts } from './cut.ts';
import { createDestination, type ExportSettings, formatFileKey, formatFileName } from './destinations.ts';
import { type BuildExportFileInput, buildExportFile } from './export-file.ts';
import { EXPORT_KINDS } from './kinds.ts';
import { SLOW_EXPORT_JOB } from './scheduled-tasks.ts';
import { type ExportWriting, toContentType, type WrittenExport, writeInParts } from './write-in-parts.ts';

type ExportOutcome = 'completed' | 'failed';
type ExportAttempt = RunAttempt & {
  readonly settings: ExportSettings;
  /** Aborts when the time quantum is over, because other exports wait for the slot; null if the export has unlimited time. */
  readonly slice: AbortSignal | null;
};

/** Runs an export. `overtaken` means that another job continues it. */
export async function tryExport(
  stores: Stores,
  place: RunReference,
  how: ExportAttempt,
): Promise<ExportOutcome | 'overtaken'> {
  return tryRun<ExportOutcome | 'overtaken'>(stores, place, how, async () => {
    try {
      return await runExport(stores, place, how);
    } catch (error) {
      if (!how.slice?.aborted || !isRetryable(error)) throw error;
      await moveRun(stores, place, { job: SLOW_EXPORT_JOB, why: SLOW_EXPORT_REASON, now: how.clock() });
      return 'overtaken';
    }
  });
}

const SLOW_EXPORT_REASON = 'it takes long, and is begun anew where it keeps no other waiting';

async function runExport(stores: Stores, place: RunReference, how: ExportAttempt): Promise<ExportOutcome> {
  const begun = await startExport(stores, place, how);
  if ('ended' in begun) return begun.ended;
  const { task, scheduled, connection } = begun;
  const as_of = await checkUsageCounted(stores, task, how.clock());
  const input = buildFileInput({ ...begun, cut: await loadCutParts(stores, task, as_of) }, how);
  const destination = createDestination(connection, scheduled.job_config, how.settings);
  const writing = { ...begun, input, destination };
  const written = await (scheduled.job_config.max_file_size_mb === null
    ? writeWholeFile(stores, writing, how)
    : writeInParts(stores, writing, how));
  try {
    return await finishExport(stores, place, { ...how, written, as_of });
  } catch (error) {
    await written.discard();
    throw error;
  }
}

type StartedExport = { task: TaskModel; scheduled: ScheduledTaskModel; connection: ConnectionModel };

/** Locks the task briefly. Afterwards it is PROCESSING, or it has already ended. */
async function startExport(
  { postgres }: Stores,
  place: RunReference,
  { clock }: RunAttempt,
): Promise<StartedExport | { ended: ExportOutcome }> {
  return postgres.transaction(async (database) => {
    const { run, ended } = await lockRun(database, place);
    if (ended) return { ended };
    const locked = await TaskModel.fetch(place, run.entity_id, { database, lock: true });
    const moved = locked.task_status === 'PENDING' ? moveTask(locked, 'PROCESSING', { now: clock() }) : {};
    const by = { user_id: locked.updated_by, now: clock() };
    const task = await TaskModel.change(locked, moved, { by, database });
    if (task.task_status !== 'PROCESSING') throw notAllowed(`the task is ${task.task_status}`);
    const scheduled = await ScheduledTaskModel.fetch(place, task.scheduled_task_id ?? '', { database });
    const connection = await ConnectionModel.fetch(place, scheduled.connection_id, { database });
    return { task, scheduled, connection };
  });
}

function buildFileInput(
  { task, scheduled, cut }: StartedExport & { cut: CutParts | null },
  { clock, signal }: RunAttempt,
): BuildExportFileInput {
  const { format, compression, bom, instant_format: instants, export_metadata_fields: fields } = scheduled.job_config;
  return {
    start_us: parseInstantUs(task.range_start!),
    end_us: parseInstantUs(task.range_end!),
    now: clock(),
    fields,
    cut,
    format,
    compression,
    bom,
    instants,
    signal,
  };
}

async function writeWholeFile(
  stores: Stores,
  { task, input, ...writing }: ExportWriting,
  how: RunAttempt,
): Promise<WrittenExport> {
  const { scheduled, connection, destination } = writing;
  const { job_config } = scheduled;
  const file = buildExportFile(stores, task, EXPORT_KINDS[scheduled.entity_type], input);
  const { url, commit, discard } = await destination.write({
    key: formatFileKey(task, connection, { job_config, which: null }),
    content_type: toContentType(job_config),
    bytes: file.bytes,
    signal: how.signal,
    begun: task.upload_id,
    onBegin: (upload_id) => storeUploadId(stores, task, { upload_id, now: how.clock() }),
  });
  const facts = { ...file.total(), file_url: url, file_name: formatFileName(task, job_config, null), files: null };
  return { facts, discard, commit };
}

/** Stores the id of an upload, so that a process that takes over can remove the unfinished upload. */
async function storeUploadId(
  { postgres }: Stores,
  { id, ...scope }: TaskModel,
  { upload_id, now }: { upload_id: string; now: Date },
): Promise<void> {
  await postgres.transaction(async (database) => {
    const task = await TaskModel.fetch(scope, id, { database, lock: true });
    await TaskModel.change(task, { upload_id }, { by: { user_id: task.updated_by, now }, database });
  });
}

type FinishExportInput = RunAttempt & { written: WrittenExport; as_of: string };

async function finishExport(
  { postgres }: Stores,
  place: RunReference,
  { written: { facts, ...written }, as_of, clock }: FinishExportInput,
): Promise<ExportOutcome> {
  const { records, ...file } = facts;
  const { size_bytes, sha256 } = file;
  return postgres.transaction(async (database) => {
    const { run, ended } = await lockRun(database, place);
    const task = await TaskModel.fetch(place, run.entity_id, { database, lock: true });
    if (ended || task.task_status !== 'PROCESSING') throw notAllowed(`the task is ${task.task_status} meanwhile`);
    // After `commit` the file is visible. If the process crashes before the commit, another attempt writes a file of the same name.
    await written.commit();
    const counts = { total_records: records, processed_records: records, successful_records: records };
    await deleteParts(database, task);
    const done = moveTask(task, 'COMPLETED', { now: clock() });
    const by = { user_id: task.updated_by, now: clock() };
    // The `as_of` of a scheduled file was stored when its content was fixed (cut.ts).
    const fresh = task.is_scheduled ? {} : { as_of };
    await TaskModel.change(task, { ...done, ...counts, ...file, ...fresh, upload_id: null }, { by, database });
    return completeRun(database, place, { result: { task_id: task.id, records, size_bytes, sha256 }, now: clock() });
  });
}
