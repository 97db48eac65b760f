/** Postgres' own parser, as a library: texts, comments and subqueries are read exactly as Postgres reads them. */
import type * as Parser from 'libpg-query';

export type Node = { readonly [key: string]: unknown };

let parser: typeof Parser | undefined;

/** Must be awaited once before the first parse. */
export async function loadParser(): Promise<void> {
  if (parser) return;
  const loaded = await import('libpg-query');
  await loaded.loadModule();
  parser = loaded;
}

/** Parses the statements of a text; throws if Postgres could not read it. */
export function parseStatements(sql: string): Node[] {
  const { stmts = [] } = parser!.parseSync(sql) as unknown as { stmts?: { stmt: Node }[] };
  return stmts.map(({ stmt }) => stmt);
}
