/**
 * Fixes the content of a scheduled task's file before its first byte: the records present by then that no earlier file contains
 * (docs/rules/exports.md, "Each record in one file"; docs/decisions/0018-exports.md).
 */
import { FarthingError, unavailable } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import {
  assignArrivalNumbers,
  type CutParts,
  type ExportCut,
  isArrivalTrackingComplete,
  markKnownSince,
} from '../../../storage/models/reporting/export-cuts.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { findScheduledFiles, giveCut, listLastUncutFiles, TaskModel } from '../../../storage/models/reporting/task.ts';
import { nextOffsets, toOffsetsText } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import { checkUsageCounted } from './counted.ts';

/**
 * Fixes the content of the due files of an environment with a test clock, so that the clock may advance before they are written. A file
 * whose usage is not counted yet is checked again; until then the advance waits.
 */
export async function cutDueFiles(stores: Stores, scope: Scope, now: Date): Promise<void> {
  for (const task of await listLastUncutFiles(stores.postgres, scope)) {
    try {
      await loadCutParts(stores, task, await checkUsageCounted(stores, task, now));
    } catch (error) {
      if (!(error instanceof FarthingError) || error.code !== 'service_unavailable') throw error;
    }
  }
}

/**
 * Returns null for a file on request, which contains the records of its range, whenever they arrived. `as_of`: the stores contain
 * everything that was accepted before this instant.
 */
export async function loadCutParts(
  { postgres }: Pick<Stores, 'postgres'>,
  { id, ...scope }: TaskModel,
  as_of: string,
): Promise<CutParts | null> {
  const requested = await TaskModel.fetch(scope, id, { database: postgres });
  const scheduled_task_id = requested.scheduled_task_id ?? '';
  if (!requested.is_scheduled) return null;
  await markKnownSince(postgres, scope, scheduled_task_id);
  if (!(await isArrivalTrackingComplete(postgres, scope, scheduled_task_id)))
    throw unavailable(
      'a transaction that began before the scheduled task was made: until it ends, nobody knows what it adds',
    );
  return postgres.transaction(async (database) => {
    const { arrivals_after } = await ScheduledTaskModel.fetch(scope, scheduled_task_id, { database, lock: true });
    const task = await TaskModel.fetch(scope, id, { database, lock: true });
    const until = task.cut_number === null ? await decideCut(database, task, as_of) : toCut(task);
    const { first_start, before } = await findScheduledFiles(database, task);
    const created = { ...until, number: arrivals_after ?? until.number };
    return { first_us: toUs(toInstant(first_start)), before: before ?? created, until };
  });
}

/**
 * Fixes the content of the file, and of earlier files that are not written yet. Late records belong to the first of
 * these files.
 */
async function decideCut(database: Transaction, task: TaskModel, as_of: string): Promise<ExportCut> {
  const number = await assignArrivalNumbers(database, task);
  const offsets = toOffsetsText(nextOffsets(await readProgress(database)));
  await giveCut(database, task, { number, offsets, as_of });
  return { number, offsets };
}

function toCut({ cut_number, cut_offsets }: TaskModel): ExportCut {
  return { number: cut_number!, offsets: cut_offsets! };
}
