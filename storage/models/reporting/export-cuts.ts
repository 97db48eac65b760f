/**
 * Contents of a scheduled file, decided once: everything that existed at its cut and is in no earlier file. Records of Postgres are
 * numbered by the first cut that sees them, so a record whose transaction commits late belongs to a later cut. Events are cut by
 * their offsets in the log (docs/decisions/0018-exports.md).
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database, Transaction } from '../../foundation/stores.ts';
import type { SqlCondition } from '../foundation/page.ts';

/** A cut includes records of cuts up to `number`, and events of each partition before its offset. */
export type ExportCut = { readonly number: string; readonly offsets: Readonly<Record<string, string>> };

/** Marks the scheduled task as visible: transactions that begin later see it and number their new records for it. */
export async function markKnownSince(
  database: Database,
  { tenant_id, environment_id }: Scope,
  id: string,
): Promise<void> {
  await database.raw(
    `update scheduled_tasks set noted_since = pg_snapshot_xmax(pg_current_snapshot())
      where tenant_id = ? and environment_id = ? and id = ? and noted_since is null`,
    [tenant_id, environment_id, id],
  );
}

/**
 * Whether all transactions that began before the task was visible have ended. A snapshot number in the future comes from another server.
 */
export async function isArrivalTrackingComplete(
  database: Database,
  { tenant_id, environment_id }: Scope,
  id: string,
): Promise<boolean> {
  const { rows } = await database.raw(
    `select noted_since <= pg_snapshot_xmin(pg_current_snapshot())
            or noted_since > pg_snapshot_xmax(pg_current_snapshot()) as is_noted
       from scheduled_tasks where tenant_id = ? and environment_id = ? and id = ?`,
    [tenant_id, environment_id, id],
  );
  return rows[0]?.is_noted === true;
}

/** Numbers the records that arrived before the scheduled task, so that the late records of its first file do not include them. */
export async function markArrivalsBefore(database: Transaction, scope: Scope, id: string): Promise<void> {
  const number = await assignArrivalNumbers(database, scope);
  const { tenant_id, environment_id } = scope;
  await database('scheduled_tasks').where({ tenant_id, environment_id, id }).update({ arrivals_after: number });
}

/** Numbers all records without a cut. Cuts of an environment are serialized, so a greater number is a later cut. */
export async function assignArrivalNumbers(
  database: Transaction,
  { tenant_id, environment_id }: Scope,
): Promise<string> {
  await database.raw(`select pg_advisory_xact_lock(hashtextextended(?, 0))`, [
    `export cut ${tenant_id} ${environment_id}`,
  ]);
  const { rows } = await database.raw(`select nextval('export_cuts')::text as number`);
  const [{ number }] = rows;
  await database.raw(
    `update export_arrivals set cut_number = ? where tenant_id = ? and environment_id = ? and cut_number is null`,
    [number, tenant_id, environment_id],
  );
  return number;
}

/**
 * Cuts that fix the content of a scheduled file: its own (`until`) and that of the previous file (`before`; for the first file that of the
 * schedule's creation). `first_us` is the start of the range of the schedule's first file.
 */
export type CutParts = { readonly first_us: number; readonly before: ExportCut; readonly until: ExportCut };

export type ArrivalKind = 'invoice' | 'credits' | 'payment' | 'credit_note';
type ExportFilePart = Scope & {
  readonly kind: ArrivalKind;
  readonly id: string;
  readonly cut: CutParts;
  readonly is_late: boolean;
};

/**
 * Condition that the file contains a record, whose id is in the column `id`. Records of the file's time range are included if they
 * existed at the cut. Records of an earlier time (`is_late`) are included if they arrived between the two cuts.
 */
export function buildFileCondition({
  kind,
  id,
  cut,
  is_late,
  tenant_id,
  environment_id,
}: ExportFilePart): SqlCondition {
  const scoped = `tenant_id = ? and environment_id = ? and kind = ?`;
  const values = [tenant_id, environment_id, kind];
  if (is_late)
    return [
      `${id} in (select record_id from export_arrivals where ${scoped} and cut_number > ? and cut_number <= ?)`,
      [...values, cut.before.number, cut.until.number],
    ];
  // A record without an arrival existed before the scheduled task.
  return [
    `not exists (select from export_arrivals a where ${scoped} and a.record_id = ${id}
                    and (a.cut_number is null or a.cut_number > ?))`,
    [...values, cut.until.number],
  ];
}
