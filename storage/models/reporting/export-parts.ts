/** Parts of a file that an attempt has begun, by number: a later attempt removes the leftover ones (docs/rules/exports.md, "In parts"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';

export type BegunPart = { readonly part: number; readonly upload_id: string; readonly is_named: boolean };
type OfTask = Scope & { readonly id: string };

export async function loadRemainingParts(database: Database, task: OfTask): Promise<ReadonlyMap<number, BegunPart>> {
  const rows: BegunPart[] = await database('export_parts')
    .where(toTaskKey(task))
    .orderBy('part')
    .select('part', 'upload_id', 'is_named');
  return new Map(rows.map((row) => [row.part, row]));
}

export async function recordPart(
  database: Database,
  task: OfTask,
  { part, upload_id }: Pick<BegunPart, 'part' | 'upload_id'>,
): Promise<void> {
  await database('export_parts')
    .insert({ ...toTaskKey(task), part, upload_id })
    .onConflict(['tenant_id', 'environment_id', 'task_id', 'part'])
    .merge({ upload_id });
}

/**
 * Records that parts of the file may be visible. Called before the first part is committed, because a commit at the destination persists
 * after a rollback here.
 */
export async function markPartsNamed(database: Database, task: OfTask, parts: number): Promise<void> {
  await database('export_parts').where(toTaskKey(task)).where('part', '<=', parts).update({ is_named: true });
}

export async function deleteParts(database: Database, task: OfTask): Promise<void> {
  await database('export_parts').where(toTaskKey(task)).delete();
}

function toTaskKey({ id, tenant_id, environment_id }: OfTask) {
  return { tenant_id, environment_id, task_id: id };
}
