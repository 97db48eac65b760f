/** Results of comparing live usage in the cache with the stores, for an audit in another process. */
import type { Database } from '../foundation/stores.ts';

type RunningCompared = {
  readonly answers: number;
  readonly lines: number;
  /** Number of grant histories. */
  readonly histories: number;
  /** Differences, one sentence each. */
  readonly differences: readonly string[];
};

/** Retention of recorded comparisons: long enough for an audit to read them. */
const RETENTION = `interval '7 days'`;

/** Records the result of an audit. The last column is true if the process that found the differences reports them itself. */
export async function recordRunningAudit(
  database: Database,
  {
    id,
    answers,
    lines,
    histories,
    differences,
    is_told,
  }: RunningCompared & { readonly id: string; readonly is_told: boolean },
): Promise<void> {
  await database.raw(
    `insert into running_audits (id, answers, lines, histories, differences, is_told) values (?, ?, ?, ?, ?::jsonb, ?)`,
    [id, answers, lines, histories, JSON.stringify(differences), is_told],
  );
  await database.raw(`delete from running_audits where checked_at < now() - ${RETENTION}`);
}

/** Takes the differences of processes that cannot report them themselves; each difference is returned to one caller only. */
export async function takeUnreportedDifferences(database: Database): Promise<string[]> {
  const { rows } = await database.raw(
    `with now_told as (update running_audits set is_told = true where not is_told returning checked_at, differences)
     select d.what from now_told, jsonb_array_elements_text(differences) as d(what) order by checked_at, d.what`,
  );
  return rows.map(({ what }: { what: string }) => what);
}

/** Sums over all recorded comparisons. */
export async function loadRunningAuditSums(database: Database): Promise<RunningCompared & { readonly audits: number }> {
  const { rows } = await database.raw(
    `select count(*)::int as audits, coalesce(sum(answers), 0)::int as answers, coalesce(sum(lines), 0)::int as lines,
            coalesce(sum(histories), 0)::int as histories,
            coalesce((select jsonb_agg(d.what) from running_audits r, jsonb_array_elements_text(r.differences) as d(what)), '[]')
              as differences
       from running_audits`,
  );
  return rows[0];
}
