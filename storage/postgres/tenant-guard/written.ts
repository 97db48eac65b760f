/** Values that an INSERT gives to the scope columns of its rows. */

import { type BoundColumns, isNode, listTerms, type Value } from './facts.ts';
import type { Node } from './parser.ts';
import { listScopeColumns } from './tables.ts';

type AnalyzeQuery = (body: Node) => { bound: BoundColumns; own: readonly string[] };

/** Returns all values of each column, over all rows; a column is absent if a row has no parameter for it. */
export function deriveWrittenRows(
  body: Node,
  table: { name: string; schema?: string | undefined },
  analyzeQuery: AnalyzeQuery,
): BoundColumns {
  const columns = ((body.cols ?? []) as Node[]).map(({ ResTarget }) => (ResTarget as { name: string }).name);
  const query = (body.selectStmt as { SelectStmt?: Node } | undefined)?.SelectStmt;
  const written = new Map<string, readonly Value[]>();
  if (!query) return written;
  for (const { column } of listScopeColumns(table)) {
    const at = columns.indexOf(column);
    const values = at < 0 ? undefined : valuesAt(query, at, analyzeQuery);
    if (values) written.set(column, values);
  }
  return written;
}

function valuesAt(query: Node, at: number, analyzeQuery: AnalyzeQuery): Value[] | undefined {
  const { op, valuesLists } = query as { op?: string; valuesLists?: Node[] };
  if (op && op !== 'SETOP_NONE') return undefined;
  if (valuesLists)
    return allOrNone(valuesLists.map((row) => deriveValue((row as { List: { items: Node[] } }).List.items[at])));
  const target = ((query.targetList ?? []) as Node[])[at] as { ResTarget?: { val: Node } } | undefined;
  const { bound, own } = analyzeQuery(query);
  return deriveValue(target?.ResTarget?.val, bound, own);
}

/** Returns a parameter of the statement, or the values of a column that is known to equal one. */
function deriveValue(node: unknown, bound: BoundColumns = new Map(), own: readonly string[] = []): Value[] | undefined {
  if (!isNode(node)) return undefined;
  const values = listTerms(node, { own }, false).map((term) =>
    'key' in term ? (bound.get(term.key) as Value[] | undefined) : [term],
  );
  return values.length > 0 ? allOrNone(values) : undefined;
}

function allOrNone(values: readonly (Value[] | undefined)[]): Value[] | undefined {
  return values.every((each) => each !== undefined) ? values.flat() : undefined;
}
