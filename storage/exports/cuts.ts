/**
 * What a scheduled file has, decided once: everything that was there when it was cut, and in no file before it. Records of Postgres are
 * numbered by the first cut that sees them, so one whose transaction commits late is of a later cut; events stand in the log
 * (docs/decisions/0018-exports.md).
 */
import type { Scope } from '../../core/scope.ts';
import type { Database, Transaction } from '../stores.ts';

/** What was there: records of cuts up to `number`, and of each partition of the log the events before its offset. */
export type ExportCut = { readonly number: string; readonly offsets: Readonly<Record<string, string>> };

/** From this statement on transactions know of the scheduled task, and note what they make. */
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

/** Whether everything that was written before transactions knew of it has ended. A number of the future is of another server. */
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

/** Gives a number to all that is there and has none. Cuts of an environment wait for each other, so a greater number is a later cut. */
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

/** What was there when a file was cut, and when the one before it was. */
export type CutParts = { readonly first_us: number; readonly before: ExportCut; readonly until: ExportCut };

/** A condition of SQL, and what stands in its places. */
export type FileCondition = readonly [sql: string, bound: readonly string[]];

type ArrivalKind = 'invoice' | 'credits';
type ExportFilePart = Scope & {
  readonly kind: ArrivalKind;
  readonly id: string;
  readonly cut: CutParts;
  readonly is_late: boolean;
};

/**
 * The condition that a record, whose id is the column `id`, is in the file: one of its own time unless it was not there yet, one of an
 * earlier time if it came between the cuts.
 */
export function buildFileCondition({
  kind,
  id,
  cut,
  is_late,
  tenant_id,
  environment_id,
}: ExportFilePart): FileCondition {
  const scoped = `tenant_id = ? and environment_id = ? and kind = ?`;
  const values = [tenant_id, environment_id, kind];
  if (is_late)
    return [
      `${id} in (select record_id from export_arrivals where ${scoped} and cut_number > ? and cut_number <= ?)`,
      [...values, cut.before.number, cut.until.number],
    ];
  // What nobody has noted was there before the scheduled task was.
  return [
    `not exists (select from export_arrivals a where ${scoped} and a.record_id = ${id}
                    and (a.cut_number is null or a.cut_number > ?))`,
    [...values, cut.until.number],
  ];
}
