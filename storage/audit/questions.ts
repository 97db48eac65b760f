/** What audits of records ask Postgres: each question is one statement, so of one moment. */
import type { Database } from '../stores.ts';

export type AuditFault<Kind extends string> = {
  readonly kind: Kind;
  readonly id: string;
  readonly stated: string;
  readonly found: string;
};

/** The first so many of each kind. `asked` is what the questions are about, by the names that they bind. */
export async function findFaults<Kind extends string>(
  database: Database,
  questions: Readonly<Record<Kind, string>>,
  { limit, ...bindings }: { readonly limit: number } & Readonly<Record<string, unknown>>,
): Promise<AuditFault<Kind>[]> {
  const found: AuditFault<Kind>[] = [];
  for (const [kind, question] of Object.entries(questions) as [Kind, string][]) {
    const { rows } = await database.raw(`${question} order by 1 limit :limit`, { ...bindings, limit } as never);
    found.push(...rows.map((row: Omit<AuditFault<Kind>, 'kind'>) => ({ kind, ...row })));
  }
  return found;
}

/** Ids of records: of those that were made last, and of some by chance. */
export async function sampleIds(
  database: Database,
  table: 'invoices' | 'reservations' | 'tasks',
  count: number,
): Promise<string[]> {
  const { rows } = await database.raw(
    `(select id from ${table} order by id desc limit ?) union (select id from ${table} tablesample system (1) limit ?)`,
    [count, count],
  );
  return rows.map(({ id }: { id: string }) => id);
}
