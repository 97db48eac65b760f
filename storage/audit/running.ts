/** What was found when running usage in memory was compared with the stores, for an audit in another process. */
import type { Database } from '../stores.ts';

export type RunningCompared = {
  readonly answers: number;
  readonly lines: number;
  /** In words. */
  readonly differences: readonly string[];
};

/** As long as somebody may look for it. */
const KEPT = `interval '7 days'`;

export async function recordRunningAudit(
  database: Database,
  { id, answers, lines, differences }: RunningCompared & { readonly id: string },
): Promise<void> {
  await database.raw(`insert into running_audits (id, answers, lines, differences) values (?, ?, ?, ?::jsonb)`, [
    id,
    answers,
    lines,
    JSON.stringify(differences),
  ]);
  await database.raw(`delete from running_audits where checked_at < now() - ${KEPT}`);
}

/** All of them together. */
export async function runningAudits(database: Database): Promise<RunningCompared & { readonly audits: number }> {
  const { rows } = await database.raw(
    `select count(*)::int as audits, coalesce(sum(answers), 0)::int as answers, coalesce(sum(lines), 0)::int as lines,
            coalesce((select jsonb_agg(d.what) from running_audits r, jsonb_array_elements_text(r.differences) as d(what)), '[]')
              as differences
       from running_audits`,
  );
  return rows[0];
}
