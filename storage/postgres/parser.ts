/** Postgres' own parser, which is a program of its own: what stands in a text, a comment or a subquery is what Postgres takes it for. */
import type * as Parser from 'libpg-query';

export type Node = { readonly [key: string]: unknown };

let parser: typeof Parser | undefined;

/** To be awaited once before anything is parsed. */
export async function loadParser(): Promise<void> {
  if (parser) return;
  const loaded = await import('libpg-query');
  await loaded.loadModule();
  parser = loaded;
}

/** The statements of a text; throws where Postgres could not read it. */
export function parseStatements(sql: string): Node[] {
  const { stmts = [] } = parser!.parseSync(sql) as unknown as { stmts?: { stmt: Node }[] };
  return stmts.map(({ stmt }) => stmt);
}
