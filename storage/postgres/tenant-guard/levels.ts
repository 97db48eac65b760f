/** The tables of one level of a query, their joins, and the queries nested inside it. */

import { isNode } from './facts.ts';
import type { Node } from './parser.ts';

type LevelTable = { readonly name: string; readonly schema?: string | undefined; readonly alias: string };
/** A join condition; `rules` names the tables that it constrains, if not all. */
type Join = { readonly condition: unknown; readonly rules?: ReadonlySet<string> };

export type QueryLevel = {
  /** Tables, without names of CTEs. */
  readonly tables: readonly { readonly alias: string; readonly table: LevelTable }[];
  readonly joins: readonly Join[];
  /** All names of the level. */
  readonly names: ReadonlySet<string>;
};

const EMPTY: QueryLevel = { tables: [], joins: [], names: new Set() };

export function parseLevel(from: readonly Node[], ctes: ReadonlySet<string>): QueryLevel {
  return from.map((item) => parseLevelItem(item, ctes)).reduce(merged, EMPTY);
}

function parseLevelItem(item: Node, ctes: ReadonlySet<string>): QueryLevel {
  const [kind, body] = Object.entries(item)[0] as [string, Node];
  if (kind === 'JoinExpr') return parseLevelJoin(body, ctes);
  if (kind === 'RangeTableSample') return parseLevelItem(body.relation as Node, ctes);
  if (kind !== 'RangeVar') return { ...EMPTY, names: new Set(parseAlias(body)) };
  const table = parseTable(body);
  const isQuery = table.schema === undefined && ctes.has(table.name);
  return { ...EMPTY, tables: isQuery ? [] : [{ alias: table.alias, table }], names: new Set([table.alias]) };
}

/** Parses a join. An outer join preserves rows of one side without a match, so its condition constrains only the other side. */
function parseLevelJoin(body: Node, ctes: ReadonlySet<string>): QueryLevel {
  const left = parseLevelItem(body.larg as Node, ctes);
  const right = parseLevelItem(body.rarg as Node, ctes);
  const ruled: Record<string, ReadonlySet<string>> = {
    JOIN_LEFT: right.names,
    JOIN_RIGHT: left.names,
    JOIN_FULL: new Set(),
  };
  const rules = ruled[body.jointype as string];
  const both = merged(left, right);
  return { ...both, joins: [...both.joins, { condition: body.quals, ...(rules ? { rules } : {}) }] };
}

function merged(one: QueryLevel, other: QueryLevel): QueryLevel {
  return {
    tables: [...one.tables, ...other.tables],
    joins: [...one.joins, ...other.joins],
    names: new Set([...one.names, ...other.names]),
  };
}

export function parseTable(range: Node): LevelTable {
  const { relname, schemaname } = range as { relname: string; schemaname?: string };
  // The key of a table in `public`, where our tables are, omits the schema.
  const schema = schemaname === 'public' ? undefined : schemaname;
  return { name: relname, schema, alias: parseAlias(range)[0] ?? relname };
}

function parseAlias(range: Node): string[] {
  const { aliasname } = (range.alias ?? {}) as { aliasname?: string };
  return aliasname === undefined ? [] : [aliasname];
}

const STATEMENTS = new Set(['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt']);
/** Fields that the caller of `findNestedSelects` reads: the queries before the statement, and the two sides of a union. */
const ELSEWHERE = new Set(['withClause', 'larg', 'rarg']);

/** Finds the queries inside this level, at any depth of its expressions, and the called functions. */
export function findNestedSelects(level: Node): { selects: Node[]; functions: string[] } {
  const found = { selects: [] as Node[], functions: [] as string[] };
  for (const [key, value] of Object.entries(level)) if (!ELSEWHERE.has(key)) collect(value, found);
  return found;
}

function collect(value: unknown, nested: { selects: Node[]; functions: string[] }): void {
  if (Array.isArray(value)) return value.forEach((each) => collect(each, nested));
  if (!isNode(value)) return;
  for (const [key, inner] of Object.entries(value)) {
    if (STATEMENTS.has(key)) nested.selects.push({ [key]: inner });
    else {
      if (key === 'FuncCall') nested.functions.push(functionName(inner as Node));
      collect(inner, nested);
    }
  }
}

function functionName({ funcname }: Node): string {
  return ((funcname as Node[]).at(-1) as { String?: { sval: string } }).String?.sval ?? '';
}
