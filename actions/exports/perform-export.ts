/**
 * Performs an export: writes the file, and then, holding the task, gives it its name and says so in one transaction. A try that is broken off
 * leaves nothing that anybody sees; another one begins anew, and of two that are tried at one time the first to end counts
 * (docs/rules/exports.md, "Whole or not there").
 */
import { notAllowed } from '../../core/error.ts';
import { moveTask } from '../../core/task/record.ts';
import { isRetryable } from '../../core/workflow/record.ts';
import type { CutParts } from '../../storage/exports/cuts.ts';
import { forgetParts } from '../../storage/exports/parts.ts';
import { ConnectionModel } from '../../storage/models/connection.ts';
import { ScheduledTaskModel } from '../../storage/models/scheduled-task.ts';
import { TaskModel } from '../../storage/models/task.ts';
import type { Stores } from '../../storage/stores.ts';
import { type Attempt, completeRun, goOnAs, holdRun, type RunPlace, tryRun } from '../workflows/run.ts';
import { checkCounted, microseconds } from './counted.ts';
import { cutOf } from './cut.ts';
import { destinationOf, type ExportSettings, fileName, keyOf } from './destinations.ts';
import { exportFile, type FileAsked } from './export-file.ts';
import { EXPORT_KINDS } from './kinds.ts';
import { SLOW_EXPORT_JOB } from './scheduled-tasks.ts';
import { contentType, type Writing, type Written, writeInParts } from './write-in-parts.ts';

type Outcome = 'completed' | 'failed';
type Performing = Attempt & {
  readonly settings: ExportSettings;
  /** Ends its turn among the others, which wait for its place; null where it has as long as it takes. */
  readonly turn: AbortSignal | null;
};

/** `overtaken`: it goes on in another job. */
export async function tryExport(stores: Stores, place: RunPlace, how: Performing): Promise<Outcome | 'overtaken'> {
  return tryRun<Outcome | 'overtaken'>(stores, place, how, async () => {
    try {
      return await performOnce(stores, place, how);
    } catch (error) {
      if (!how.turn?.aborted || !isRetryable(error)) throw error;
      await goOnAs(stores, place, { job: SLOW_EXPORT_JOB, why: TAKES_LONG, now: how.clock() });
      return 'overtaken';
    }
  });
}

const TAKES_LONG = 'it takes long, and is begun anew where it keeps no other waiting';

async function performOnce(stores: Stores, place: RunPlace, how: Performing): Promise<Outcome> {
  const begun = await begin(stores, place, how);
  if ('ended' in begun) return begun.ended;
  const { task, scheduled, connection } = begun;
  const as_of = await checkCounted(stores, task, how.clock());
  const asked = askedOf({ ...begun, cut: await cutOf(stores, task, as_of) }, how);
  const destination = destinationOf(connection, scheduled.job_config, how.settings);
  const writing = { ...begun, asked, destination };
  const written = await (scheduled.job_config.max_file_size_mb === null
    ? writeWhole(stores, writing, how)
    : writeInParts(stores, writing, how));
  try {
    return await finish(stores, place, { ...how, written, as_of });
  } catch (error) {
    await written.discard();
    throw error;
  }
}

type Begun = { task: TaskModel; scheduled: ScheduledTaskModel; connection: ConnectionModel };

/** Holds the task for a moment: it is PROCESSING then, or has ended already. */
async function begin({ postgres }: Stores, place: RunPlace, { clock }: Attempt): Promise<Begun | { ended: Outcome }> {
  return postgres.transaction(async (database) => {
    const { run, ended } = await holdRun(database, place);
    if (ended) return { ended };
    const held = await TaskModel.fetch(place, run.entity_id, { database, lock: true });
    const moved = held.task_status === 'PENDING' ? moveTask(held, 'PROCESSING', { now: clock() }) : {};
    const by = { user_id: held.updated_by, now: clock() };
    const task = await TaskModel.change(held, moved, { by, database });
    if (task.task_status !== 'PROCESSING') throw notAllowed(`the task is ${task.task_status}`);
    const scheduled = await ScheduledTaskModel.fetch(place, task.scheduled_task_id ?? '', { database });
    const connection = await ConnectionModel.fetch(place, scheduled.connection_id, { database });
    return { task, scheduled, connection };
  });
}

function askedOf({ task, scheduled, cut }: Begun & { cut: CutParts | null }, { clock, signal }: Attempt): FileAsked {
  const { format, compression, bom, export_metadata_fields: fields } = scheduled.job_config;
  return {
    start_us: microseconds(task.range_start!),
    end_us: microseconds(task.range_end!),
    now: clock(),
    fields,
    cut,
    format,
    compression,
    bom,
    signal,
  };
}

async function writeWhole(stores: Stores, { task, asked, ...writing }: Writing, how: Attempt): Promise<Written> {
  const { scheduled, connection, destination } = writing;
  const { job_config } = scheduled;
  const file = exportFile(stores, task, EXPORT_KINDS[scheduled.entity_type], asked);
  const { url, commit, discard } = await destination.write({
    key: keyOf(task, connection, { job_config, which: null }),
    content_type: contentType(job_config),
    bytes: file.bytes,
    signal: how.signal,
    begun: task.upload_id,
    onBegin: (upload_id) => keepUpload(stores, task, { upload_id, now: how.clock() }),
  });
  const told = { ...file.total(), file_url: url, file_name: fileName(task, job_config, null), files: null };
  return { told, discard, commit };
}

/** Whoever goes on after this process takes away what it has left. */
async function keepUpload(
  { postgres }: Stores,
  { id, ...scope }: TaskModel,
  { upload_id, now }: { upload_id: string; now: Date },
): Promise<void> {
  await postgres.transaction(async (database) => {
    const task = await TaskModel.fetch(scope, id, { database, lock: true });
    await TaskModel.change(task, { upload_id }, { by: { user_id: task.updated_by, now }, database });
  });
}

type Finishing = Attempt & { written: Written; as_of: string };

async function finish(
  { postgres }: Stores,
  place: RunPlace,
  { written: { told, ...written }, as_of, clock }: Finishing,
): Promise<Outcome> {
  const { records, ...file } = told;
  const { size_bytes, sha256 } = file;
  return postgres.transaction(async (database) => {
    const { run, ended } = await holdRun(database, place);
    const task = await TaskModel.fetch(place, run.entity_id, { database, lock: true });
    if (ended || task.task_status !== 'PROCESSING') throw notAllowed(`the task is ${task.task_status} meanwhile`);
    // From here on it is there. Who dies before the transaction has ended leaves a whole file, which another try puts the same name on.
    await written.commit();
    const counts = { total_records: records, processed_records: records, successful_records: records };
    await forgetParts(database, task);
    const done = moveTask(task, 'COMPLETED', { now: clock() });
    const by = { user_id: task.updated_by, now: clock() };
    // That of a schedule is as of its cut.
    const fresh = task.is_scheduled ? {} : { as_of };
    await TaskModel.change(task, { ...done, ...counts, ...file, ...fresh, upload_id: null }, { by, database });
    return completeRun(database, place, { result: { task_id: task.id, records, size_bytes, sha256 }, now: clock() });
  });
}
