/**
 * Facts from the conditions of one level of a query: a column equals a value, or another column. Only conditions that every row
 * satisfies are used: conditions joined by AND, and a join condition for the side that it constrains.
 */
import type { Node } from './parser.ts';

/** A term of a condition: `alias.column`, or a parameter of the statement. */
type ScopeTerm = { readonly key: string } | { readonly parameter: number; readonly many: boolean };
/** A fact about two terms: both are equal. `rules` names the tables whose columns the fact constrains; all if absent. */
type ScopeFact = { readonly left: ScopeTerm; readonly right: ScopeTerm; readonly rules?: ReadonlySet<string> };
/** Values that the columns are known to equal. */
export type BoundColumns = ReadonlyMap<string, readonly Value[]>;
export type Value = { readonly parameter: number; readonly many: boolean };

/** Aliases of the tables of this level. A column without a table may belong to any of them; Postgres rejects an ambiguous name. */
type LevelNames = { readonly own: readonly string[] };

/** The conditions that must all hold. */
function listConjuncts(condition: unknown): Node[] {
  if (!isNode(condition)) return [];
  const { BoolExpr } = condition as { BoolExpr?: { boolop: string; args: Node[] } };
  return BoolExpr?.boolop === 'AND_EXPR' ? BoolExpr.args.flatMap(listConjuncts) : [condition];
}

export function listFacts(condition: unknown, names: LevelNames, rules?: ReadonlySet<string>): ScopeFact[] {
  return listConjuncts(condition)
    .flatMap(equalities)
    .flatMap(({ left, right, isAny }) => {
      const lefts = listTerms(left, names, false);
      const rights = listTerms(right, names, isAny);
      return lefts.flatMap((each) =>
        rights.map((other) => ({ left: each, right: other, ...(rules ? { rules } : {}) })),
      );
    });
}

/** Returns the values of all columns that the facts determine, starting with the known columns of the outer query. */
export function follow(facts: readonly ScopeFact[], known: BoundColumns): BoundColumns {
  const bound = new Map(known);
  for (let grows = true; grows; ) {
    grows = false;
    for (const fact of facts) {
      if (take(bound, fact.left, fact.right, fact.rules)) grows = true;
      if (take(bound, fact.right, fact.left, fact.rules)) grows = true;
    }
  }
  return bound;
}

function take(
  bound: Map<string, readonly Value[]>,
  to: ScopeTerm,
  from: ScopeTerm,
  rules: ScopeFact['rules'],
): boolean {
  if (!('key' in to) || bound.has(to.key)) return false;
  if (rules && !rules.has(to.key.slice(0, to.key.indexOf('.')))) return false;
  const values = 'key' in from ? bound.get(from.key) : [from];
  if (values) bound.set(to.key, values);
  return values !== undefined;
}

type Equality = { left: unknown; right: unknown; isAny: boolean };

/** Lists the equalities in a condition: `a = b`, `a = any(b)` and `(a, b) = (c, d)`. */
function equalities(condition: Node): Equality[] {
  const { A_Expr } = condition as { A_Expr?: { kind: string; name: Node[]; lexpr: Node; rexpr: Node } };
  if (!A_Expr || (A_Expr.name[0] as { String?: { sval: string } }).String?.sval !== '=') return [];
  const { kind, lexpr, rexpr } = A_Expr;
  if (kind === 'AEXPR_OP_ANY') return [{ left: lexpr, right: rexpr, isAny: true }];
  if (kind !== 'AEXPR_OP') return [];
  const [left, right] = [listRowValues(lexpr), listRowValues(rexpr)];
  return left.length === right.length ? left.map((each, i) => ({ left: each, right: right[i], isAny: false })) : [];
}

function listRowValues(node: Node): unknown[] {
  return (node as { RowExpr?: { args: unknown[] } }).RowExpr?.args ?? [node];
}

/** Lists the columns and parameters of an expression; empty for any other expression. */
export function listTerms(node: unknown, { own }: LevelNames, many: boolean): ScopeTerm[] {
  const plain = withoutCast(node);
  const parameter = (plain as { ParamRef?: { number?: number } }).ParamRef?.number;
  if (parameter !== undefined) return [{ parameter, many }];
  const fields = (plain as { ColumnRef?: { fields: Node[] } }).ColumnRef?.fields?.map(
    (field) => (field as { String?: { sval: string } }).String?.sval,
  );
  if (!fields || many || fields.includes(undefined)) return [];
  const [table, column] = fields.slice(-2);
  return column === undefined ? own.map((alias) => ({ key: `${alias}.${table}` })) : [{ key: `${table}.${column}` }];
}

/** Removes a cast to text; any other cast might change the value. */
function withoutCast(node: unknown): Node {
  const { TypeCast } = node as { TypeCast?: { arg: Node; typeName: { names: Node[] } } };
  if (!TypeCast) return isNode(node) ? node : {};
  const name = (TypeCast.typeName.names.at(-1) as { String?: { sval: string } }).String?.sval;
  return name === 'text' ? TypeCast.arg : {};
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null;
}
