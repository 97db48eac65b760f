/**
 * Checks that a statement names tenant and environment of every row that it reads or writes, and finds the values that name them.
 * Postgres' own parser is used, so string literals, comments and subqueries are read exactly as Postgres reads them. A statement that
 * is not proved is rejected: a condition under OR or NOT proves nothing.
 */

import { type BoundColumns, follow, listFacts, type Value } from './facts.ts';
import { findNestedSelects, parseLevel, parseTable, type QueryLevel } from './levels.ts';
import { type Node, parseStatements } from './parser.ts';
import { listScopeColumns, type ScopeColumn, type ScopeColumnOfTable } from './tables.ts';
import { deriveWrittenRows } from './written.ts';

/** The value at this position must equal the caller's `scope_column`; with `many`, each element of the list must. */
export type Demand = Value & { readonly scope_column: ScopeColumn; readonly table: string };
export type StatementVerdict = { readonly demands: readonly Demand[] } | { readonly rejected: string };

/** Context of a checked statement. `ctes` are the names that stand for a query of the statement. */
type StatementContext = { readonly ctes: ReadonlySet<string>; readonly bound: BoundColumns };
const NOTHING: StatementContext = { ctes: new Set(), bound: new Map() };

/** These statements touch no rows. */
const HARMLESS = new Set(['TransactionStmt', 'VariableSetStmt', 'VariableShowStmt', 'ListenStmt', 'NotifyStmt']);
/** Functions that take SQL as text, or read outside our tables. */
const ROUNDABOUT = /^(?:dblink.*|(?:query|table|cursor|schema|database)_to_xml.*|pg_read_.*|lo_.*)$/;

export function checkStatement(sql: string): StatementVerdict {
  try {
    return { demands: parseStatements(sql).flatMap((statement) => listDemands(statement, NOTHING)) };
  } catch (error) {
    if (error instanceof MissingScope) return { rejected: error.message };
    return { rejected: `it cannot be read (${error instanceof Error ? error.message : String(error)})` };
  }
}

class MissingScope extends Error {}

function listDemands(statement: Node, seen: StatementContext): Demand[] {
  const [kind, body] = Object.entries(statement)[0] as [string, Node];
  if (kind === 'SelectStmt') return select(body, seen);
  if (kind === 'InsertStmt') return insert(body, seen);
  if (kind === 'UpdateStmt' || kind === 'DeleteStmt') return change(body, seen);
  if (HARMLESS.has(kind)) return [];
  throw new MissingScope(`${kind} is no statement of a request`);
}

function select(body: Node, outer: StatementContext): Demand[] {
  const { demands, seen } = withQueries(body, outer);
  const { op, larg, rarg } = body as { op?: string; larg?: Node; rarg?: Node };
  if (op && op !== 'SETOP_NONE') return [...demands, ...select(larg!, seen), ...select(rarg!, seen)];
  const level = parseLevel((body.fromClause ?? []) as Node[], seen.ctes);
  return [...demands, ...listLevelDemands(body, level, seen)];
}

function change(body: Node, outer: StatementContext): Demand[] {
  const { demands, seen } = withQueries(body, outer);
  const from = [{ RangeVar: body.relation }, ...((body.fromClause ?? body.usingClause ?? []) as Node[])];
  const level = parseLevel(from as Node[], seen.ctes);
  const moved = parseTable(body.relation as Node);
  const given = ((body.targetList ?? []) as Node[]).map(({ ResTarget }) => (ResTarget as { name: string }).name);
  const scope_column = listScopeColumns(moved).find(({ column }) => given.includes(column) && column !== 'id');
  if (scope_column) throw new MissingScope(`${moved.name}.${scope_column.column} is written once`);
  return [...demands, ...listLevelDemands(body, level, seen)];
}

/**
 * Lists the scope values that one level of a query demands. The queries nested in it may use the facts known at this
 * level.
 */
function listLevelDemands(body: Node, level: QueryLevel, seen: StatementContext): Demand[] {
  const names = { own: level.tables.map(({ alias }) => alias) };
  const facts = [
    ...listFacts(body.whereClause, names),
    ...level.joins.flatMap(({ condition, rules }) => listFacts(condition, names, rules)),
  ];
  // A name of this level hides an equal name further out.
  const outside = new Map([...seen.bound].filter(([key]) => !level.names.has(key.slice(0, key.indexOf('.')))));
  const bound = follow(facts, outside);
  const own = level.tables.flatMap(({ alias, table }) =>
    listTableDemands(table, (column) => bound.get(`${alias}.${column}`)),
  );
  return [...own, ...inside(body, { ctes: seen.ctes, bound })];
}

function listTableDemands(
  table: { name: string; schema?: string | undefined },
  valuesOf: (column: string) => readonly Value[] | undefined,
): Demand[] {
  return listScopeColumns(table).flatMap(({ column, scope_column }: ScopeColumnOfTable) => {
    const values = valuesOf(column);
    if (!values) throw new MissingScope(`${table.name} is asked without its ${column}`);
    return values.map((value) => ({ ...value, scope_column, table: table.name }));
  });
}

function insert(body: Node, outer: StatementContext): Demand[] {
  const { demands, seen } = withQueries(body, outer);
  const table = parseTable(body.relation as Node);
  const rows = deriveWrittenRows(body, table, (query) => deriveBoundColumns(query, seen));
  const own = listTableDemands(table, (column) => rows.get(column));
  return [...demands, ...own, ...overwritten(body, { table, rows, seen }), ...inside(body, seen)];
}

/** Checks `on conflict do update`, which writes to an existing row: the row must have the same scope. */
function overwritten(
  body: Node,
  { table, rows, seen }: { table: ReturnType<typeof parseTable>; rows: BoundColumns; seen: StatementContext },
): Demand[] {
  const conflict = body.onConflictClause as Node | undefined;
  if (conflict?.action !== 'ONCONFLICT_UPDATE') return [];
  const infer = (conflict.infer as { indexElems?: Node[] } | undefined)?.indexElems ?? [];
  const named = infer.map(({ IndexElem }) => (IndexElem as { name?: string }).name);
  const excluded = [...rows].map(([column, values]) => [`excluded.${column}`, values] as const);
  const own = { own: [table.alias] };
  const bound = follow(listFacts(conflict.whereClause, own), new Map([...seen.bound, ...excluded]));
  return listTableDemands(table, (column) => (named.includes(column) ? [] : bound.get(`${table.alias}.${column}`)));
}

/** The WITH clause: each query may be named by later ones. */
function withQueries(body: Node, outer: StatementContext): { demands: Demand[]; seen: StatementContext } {
  const clause = body.withClause as { ctes: Node[]; recursive?: boolean } | undefined;
  const queries = (clause?.ctes ?? []).map(
    ({ CommonTableExpr }) => CommonTableExpr as { ctename: string; ctequery: Node },
  );
  const all = queries.map(({ ctename }) => ctename);
  const demands = queries.flatMap(({ ctequery }, at) => {
    const known = clause?.recursive ? all : all.slice(0, at);
    return listDemands(ctequery, { ctes: new Set([...outer.ctes, ...known]), bound: outer.bound });
  });
  return { demands, seen: { ctes: new Set([...outer.ctes, ...all]), bound: outer.bound } };
}

function inside(body: Node, seen: StatementContext): Demand[] {
  const { selects, functions } = findNestedSelects(body);
  const roundabout = functions.find((name) => ROUNDABOUT.test(name));
  if (roundabout) throw new MissingScope(`${roundabout} reads what cannot be seen here`);
  return selects.flatMap((query) => listDemands(query, seen));
}

/** Known columns of a query whose rows are inserted. */
function deriveBoundColumns(body: Node, seen: StatementContext): { bound: BoundColumns; own: readonly string[] } {
  const level = parseLevel((body.fromClause ?? []) as Node[], seen.ctes);
  const own = level.tables.map(({ alias }) => alias);
  return { bound: follow(listFacts(body.whereClause, { own }), new Map()), own };
}
