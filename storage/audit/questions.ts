/** Postgres queries of the record audits: each is one statement, so it reads one snapshot. */
import type { Database } from '../foundation/stores.ts';

export type AuditFault<Kind extends string> = {
  readonly kind: Kind;
  readonly id: string;
  readonly stored: string;
  readonly found: string;
};

/** Finds the first `limit` faults of each kind. `bindings` select the audited records, by the names in the queries. */
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

/** Lists ids of the newest records, and of some at random. */
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
