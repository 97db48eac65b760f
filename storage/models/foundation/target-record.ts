/**
 * The record that a request names in its path. A request with `If-Match` changes it only in the state that the caller
 * has read (docs/rules/records.md, "Lost updates"). The state is compared under a lock of the row, in the transaction
 * of the change, so no concurrent change can come in between.
 */
import { hash } from 'node:crypto';
import { FarthingError } from '../../../core/foundation/error.ts';
import { currentRequestContext, type TargetRecord } from '../../foundation/request-context.ts';
import type { Database } from '../../foundation/stores.ts';

type Row = { readonly id: string };
type GuardedTarget = TargetRecord & { readonly if_match: Set<string> | '*' };

/** Entity tag of a record: it differs if any column differs. */
export function toEntityTag(row: object): string {
  return `"${hash('sha256', JSON.stringify({ ...row }), 'base64url').slice(0, TAG_LENGTH)}"`;
}

const TAG_LENGTH = 22;

/** Notes the state of the target that was read last, for the ETag of the answer. */
export function noteRead(row: Row): void {
  const target = currentRequestContext()?.target;
  if (target?.id === row.id) target.row = row;
}

/** Notes the row of a target whose path does not have its id. A row that does not exist yet has a state, too. */
export function noteNamed(
  name: string,
  row: Row | undefined,
  { database, lock }: { database: Database; lock: boolean },
): void {
  const target = currentRequestContext()?.target;
  if (target === undefined || target.id !== name) return;
  target.id = row?.id ?? name;
  const state = row ?? { id: name };
  noteRead(state);
  if (lock) checkLocked(state, name, database);
}

/** Notes the states that the request itself has written. A repeated transaction of the request may find them. */
export function noteWritten(
  changes: readonly { readonly before: object | null; readonly after: object | null }[],
): void {
  const target = currentRequestContext()?.target;
  if (target === undefined) return;
  for (const { before, after } of changes) {
    const row = after as Row | null;
    if (row === null) continue;
    if (before === null || target.made.has(row.id)) target.made.set(row.id, row);
    if (row.id !== target.id) continue;
    target.row = row;
    if (target.if_match instanceof Set) target.if_match.add(toEntityTag(row));
  }
}

/** Returns the target if the request has a condition for it and it is among these records. */
export function findGuardedTarget(ids: readonly string[], database: Database): GuardedTarget | undefined {
  const target = currentRequestContext()?.target;
  if (target?.if_match === undefined || target.id === undefined || !ids.includes(target.id)) return undefined;
  return target.held_by === database ? undefined : (target as GuardedTarget);
}

/** Compares a row that this transaction has locked with the condition of the request. */
export function checkLocked(row: Row, recordName: string, transaction: Database): void {
  const target = currentRequestContext()?.target;
  if (target?.if_match === undefined || target.id !== row.id || !transaction.isTransaction) return;
  if (target.if_match !== '*' && !target.if_match.has(toEntityTag(row)))
    throw new FarthingError('version_conflict', `${recordName} ${row.id} was changed in between`, {
      details: { field: 'If-Match' },
    });
  target.held_by = transaction;
}
