/** Which values an INSERT gives to the columns that say whose the rows are. */
import type { Node } from '../parser.ts';
import { type Bound, isNode, termsOf, type Value } from './facts.ts';
import { belongingOf } from './tables.ts';

type Query = (body: Node) => { bound: Bound; own: readonly string[] };

/** Of each column all values, of all rows; a column is absent when one row has none that came with the statement. */
export function writtenRows(body: Node, table: { name: string; schema?: string | undefined }, ask: Query): Bound {
  const columns = ((body.cols ?? []) as Node[]).map(({ ResTarget }) => (ResTarget as { name: string }).name);
  const query = (body.selectStmt as { SelectStmt?: Node } | undefined)?.SelectStmt;
  const written = new Map<string, readonly Value[]>();
  if (!query) return written;
  for (const { column } of belongingOf(table)) {
    const at = columns.indexOf(column);
    const values = at < 0 ? undefined : valuesAt(query, at, ask);
    if (values) written.set(column, values);
  }
  return written;
}

function valuesAt(query: Node, at: number, ask: Query): Value[] | undefined {
  const { op, valuesLists } = query as { op?: string; valuesLists?: Node[] };
  if (op && op !== 'SETOP_NONE') return undefined;
  if (valuesLists)
    return allOrNone(valuesLists.map((row) => valueOf((row as { List: { items: Node[] } }).List.items[at])));
  const target = ((query.targetList ?? []) as Node[])[at] as { ResTarget?: { val: Node } } | undefined;
  const { bound, own } = ask(query);
  return valueOf(target?.ResTarget?.val, bound, own);
}

/** A value that came with the statement, or a column that is known to equal one. */
function valueOf(node: unknown, bound: Bound = new Map(), own: readonly string[] = []): Value[] | undefined {
  if (!isNode(node)) return undefined;
  const values = termsOf(node, { own }, false).map((term) =>
    'key' in term ? (bound.get(term.key) as Value[] | undefined) : [term],
  );
  return values.length > 0 ? allOrNone(values) : undefined;
}

function allOrNone(values: readonly (Value[] | undefined)[]): Value[] | undefined {
  return values.every((each) => each !== undefined) ? values.flat() : undefined;
}
