/**
 * What the file of a scheduled task has is decided once, before its first byte: what was there by then and is in no file before it
 * (docs/rules/exports.md, "Each record in one file"; docs/decisions/0018-exports.md).
 */
import { FarthingError, unavailable } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { toInstant, toUs } from '../../core/time/instant.ts';
import {
  assignArrivalNumbers,
  type CutParts,
  type ExportCut,
  isArrivalTrackingComplete,
  markKnownSince,
} from '../../storage/exports/cuts.ts';
import { ScheduledTaskModel } from '../../storage/models/scheduled-task.ts';
import { findScheduledFiles, giveCut, listLastUncutFiles, TaskModel } from '../../storage/models/task.ts';
import { nextOffsets, toOffsetsText } from '../../storage/progress/slice-state.ts';
import { readProgress } from '../../storage/progress/slices.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { checkUsageCounted } from './counted.ts';

/**
 * By the clock of an environment: which records its files have is decided at the instant at which they are due, so that the clock may go on
 * before they are written. What cannot be said yet is asked again; until then the advance waits.
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
 * Null of a file that somebody asked for: it has what happened in its range, whenever that came. `as_of`: what was accepted before is in the
 * stores.
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
    await ScheduledTaskModel.fetch(scope, scheduled_task_id, { database, lock: true });
    const task = await TaskModel.fetch(scope, id, { database, lock: true });
    const until = task.cut_number === null ? await decideCut(database, task, as_of) : toCut(task);
    const { first_start, before } = await findScheduledFiles(database, task);
    return { first_us: toUs(toInstant(first_start)), before: before ?? until, until };
  });
}

/** With it each file before it that was not begun: what came since is in the first of them. */
async function decideCut(database: Transaction, task: TaskModel, as_of: string): Promise<ExportCut> {
  const number = await assignArrivalNumbers(database, task);
  const offsets = toOffsetsText(nextOffsets(await readProgress(database)));
  await giveCut(database, task, { number, offsets, as_of });
  return { number, offsets };
}

function toCut({ cut_number, cut_offsets }: TaskModel): ExportCut {
  return { number: cut_number!, offsets: cut_offsets! };
}
