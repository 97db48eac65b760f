/**
 * Whether a statement carries the scope of every row that it reads or writes, and which of its values say so. It is read by
 * Postgres' own parser, so what stands in a text, a comment or a subquery is what Postgres takes it for. What cannot be
 * proved is refused: a condition under OR or NOT proves nothing.
 */
import { type Node, parseStatements } from '../parser.ts';
import { type Bound, factsOf, follow, type Value } from './facts.ts';
import { type Level, levelOf, selectsIn, tableOf } from './levels.ts';
import { type Belonging, belongingOf, type ScopeColumn } from './tables.ts';
import { writtenRows } from './written.ts';

/** The value at this place must be that part of the caller's scope; `many` is a list of them. */
export type Demand = Value & { readonly holds: ScopeColumn; readonly table: string };
export type Verdict = { readonly demands: readonly Demand[] } | { readonly refused: string };

/** Names that stand for a query of the same statement. */
type Seen = { readonly ctes: ReadonlySet<string>; readonly bound: Bound };
const NOTHING: Seen = { ctes: new Set(), bound: new Map() };

/** These say nothing about rows. */
const HARMLESS = new Set(['TransactionStmt', 'VariableSetStmt', 'VariableShowStmt', 'ListenStmt', 'NotifyStmt']);
/** They take SQL as a text, or read what is no table of ours. */
const ROUNDABOUT = /^(?:dblink.*|(?:query|table|cursor|schema|database)_to_xml.*|pg_read_.*|lo_.*)$/;

export function judge(sql: string): Verdict {
  try {
    return { demands: parseStatements(sql).flatMap((statement) => judged(statement, NOTHING)) };
  } catch (error) {
    if (error instanceof Forgotten) return { refused: error.message };
    return { refused: `it cannot be read (${error instanceof Error ? error.message : String(error)})` };
  }
}

class Forgotten extends Error {}

function judged(statement: Node, seen: Seen): Demand[] {
  const [kind, body] = Object.entries(statement)[0] as [string, Node];
  if (kind === 'SelectStmt') return select(body, seen);
  if (kind === 'InsertStmt') return insert(body, seen);
  if (kind === 'UpdateStmt' || kind === 'DeleteStmt') return change(body, seen);
  if (HARMLESS.has(kind)) return [];
  throw new Forgotten(`${kind} is no statement of a request`);
}

function select(body: Node, outer: Seen): Demand[] {
  const { demands, seen } = withQueries(body, outer);
  const { op, larg, rarg } = body as { op?: string; larg?: Node; rarg?: Node };
  if (op && op !== 'SETOP_NONE') return [...demands, ...select(larg!, seen), ...select(rarg!, seen)];
  const level = levelOf((body.fromClause ?? []) as Node[], seen.ctes);
  return [...demands, ...ofLevel(body, level, seen)];
}

function change(body: Node, outer: Seen): Demand[] {
  const { demands, seen } = withQueries(body, outer);
  const from = [{ RangeVar: body.relation }, ...((body.fromClause ?? body.usingClause ?? []) as Node[])];
  const level = levelOf(from as Node[], seen.ctes);
  const moved = tableOf(body.relation as Node);
  const given = ((body.targetList ?? []) as Node[]).map(({ ResTarget }) => (ResTarget as { name: string }).name);
  const kept = belongingOf(moved).find(({ column }) => given.includes(column) && column !== 'id');
  if (kept) throw new Forgotten(`${moved.name}.${kept.column} is written once`);
  return [...demands, ...ofLevel(body, level, seen)];
}

/** The tables of one level, and the queries inside it, which may go by what is known here. */
function ofLevel(body: Node, level: Level, seen: Seen): Demand[] {
  const names = { own: level.tables.map(({ alias }) => alias) };
  const facts = [
    ...factsOf(body.whereClause, names),
    ...level.joins.flatMap(({ condition, rules }) => factsOf(condition, names, rules)),
  ];
  // A name of this level hides the same name further out.
  const outside = new Map([...seen.bound].filter(([key]) => !level.names.has(key.slice(0, key.indexOf('.')))));
  const bound = follow(facts, outside);
  const own = level.tables.flatMap(({ alias, table }) => demandsOf(table, (column) => bound.get(`${alias}.${column}`)));
  return [...own, ...inside(body, { ctes: seen.ctes, bound })];
}

function demandsOf(
  table: { name: string; schema?: string | undefined },
  valuesOf: (column: string) => readonly Value[] | undefined,
): Demand[] {
  return belongingOf(table).flatMap(({ column, holds }: Belonging) => {
    const values = valuesOf(column);
    if (!values) throw new Forgotten(`${table.name} is asked without its ${column}`);
    return values.map((value) => ({ ...value, holds, table: table.name }));
  });
}

function insert(body: Node, outer: Seen): Demand[] {
  const { demands, seen } = withQueries(body, outer);
  const table = tableOf(body.relation as Node);
  const rows = writtenRows(body, table, (query) => boundOf(query, seen));
  const own = demandsOf(table, (column) => rows.get(column));
  return [...demands, ...own, ...overwritten(body, { table, rows, seen }), ...inside(body, seen)];
}

/** `on conflict do update` writes to a row that is there: it must be one of the same scope. */
function overwritten(
  body: Node,
  { table, rows, seen }: { table: ReturnType<typeof tableOf>; rows: Bound; seen: Seen },
): Demand[] {
  const conflict = body.onConflictClause as Node | undefined;
  if (conflict?.action !== 'ONCONFLICT_UPDATE') return [];
  const infer = (conflict.infer as { indexElems?: Node[] } | undefined)?.indexElems ?? [];
  const named = infer.map(({ IndexElem }) => (IndexElem as { name?: string }).name);
  const excluded = [...rows].map(([column, values]) => [`excluded.${column}`, values] as const);
  const own = { own: [table.alias] };
  const bound = follow(factsOf(conflict.whereClause, own), new Map([...seen.bound, ...excluded]));
  return demandsOf(table, (column) => (named.includes(column) ? [] : bound.get(`${table.alias}.${column}`)));
}

/** What stands before the statement: each query may be named by those behind it. */
function withQueries(body: Node, outer: Seen): { demands: Demand[]; seen: Seen } {
  const clause = body.withClause as { ctes: Node[]; recursive?: boolean } | undefined;
  const queries = (clause?.ctes ?? []).map(
    ({ CommonTableExpr }) => CommonTableExpr as { ctename: string; ctequery: Node },
  );
  const all = queries.map(({ ctename }) => ctename);
  const demands = queries.flatMap(({ ctequery }, at) => {
    const known = clause?.recursive ? all : all.slice(0, at);
    return judged(ctequery, { ctes: new Set([...outer.ctes, ...known]), bound: outer.bound });
  });
  return { demands, seen: { ctes: new Set([...outer.ctes, ...all]), bound: outer.bound } };
}

function inside(body: Node, seen: Seen): Demand[] {
  const { selects, functions } = selectsIn(body);
  const roundabout = functions.find((name) => ROUNDABOUT.test(name));
  if (roundabout) throw new Forgotten(`${roundabout} reads what cannot be seen here`);
  return selects.flatMap((query) => judged(query, seen));
}

/** What is known of the columns of a query whose rows are inserted. */
function boundOf(body: Node, seen: Seen): { bound: Bound; own: readonly string[] } {
  const level = levelOf((body.fromClause ?? []) as Node[], seen.ctes);
  const own = level.tables.map(({ alias }) => alias);
  return { bound: follow(factsOf(body.whereClause, { own }), new Map()), own };
}
