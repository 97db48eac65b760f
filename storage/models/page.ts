/**
 * One page of a table. What narrows a list is data, a line per condition, so that a route neither writes SQL nor touches
 * a query that is not awaited: `narrow` is the one place where a query is refined step by step.
 */
import { type Model, type QueryBuilder, raw } from 'objection';

/** A record of any table. */
export type PageRecord = Model;
export type PageQuery<M extends PageRecord> = QueryBuilder<M, M[]>;

/** How a column is compared with what is asked for. `??` is the column, `?` the value. */
const SQL = {
  '=': '?? = ?',
  '<>': '?? <> ?',
  '<': '?? < ?',
  '<=': '?? <= ?',
  '>': '?? > ?',
  '>=': '?? >= ?',
  in: '?? = any(?)',
  'not in': '?? <> all(?)',
  contains: '?? ilike ?',
  'contains not': '?? not ilike ?',
  /** A list in the column and the list that is given have something in common. */
  overlaps: '?? && ?::text[]',
  /** A map in the column has all pairs of the map that is given. */
  includes: '?? @> ?::jsonb',
  /** What ends at the instant of the column has not ended then; null is "never". */
  'open at': '(?? is null or ?? > ?)',
} as const;
export type Operator = keyof typeof SQL;

/**
 * What is undefined or null narrows nothing. Without an operator a value is compared, a list is searched, and '' and the
 * empty list say nothing either.
 */
export type Condition =
  | readonly [column: string, value: unknown]
  | readonly [column: string, operator: Operator, value: unknown];

/** The query with every condition that is asked for. */
export function narrow<M extends PageRecord>(query: PageQuery<M>, conditions: readonly Condition[]): PageQuery<M> {
  return conditions.reduce((narrowed, condition) => {
    const [column, operator, value] = condition.length === 2 ? withOperator(...condition) : condition;
    if (value === undefined || value === null) return narrowed;
    // A column of whole numbers would refuse to be compared with a fraction.
    const sql = typeof value === 'number' ? `${SQL[operator]}::numeric` : SQL[operator];
    const columns = [...sql.matchAll(/\?\?/g)].map(() => column);
    return narrowed.where(raw(sql, [...columns, bound(operator, value)] as never));
  }, query);
}

function withOperator(column: string, value: unknown): [string, Operator, unknown] {
  if (!Array.isArray(value)) return [column, '=', value === '' ? undefined : value];
  return [column, 'in', value.length > 0 ? value : undefined];
}

function bound(operator: Operator, value: unknown): unknown {
  if (operator === 'includes') return JSON.stringify(value);
  if (operator !== 'contains' && operator !== 'contains not') return value;
  // The value is the middle of a pattern: its own % and _ are text.
  return `%${String(value).replace(/[\\%_]/g, (sign) => `\\${sign}`)}%`;
}

export type PageRequest = {
  readonly limit: number;
  readonly offset: number;
  readonly order: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
};
export type RecordPage<M> = { items: M[]; pagination: { total: number; limit: number; offset: number } };

/** One page and how many records there are in all. */
export async function loadPage<M extends PageRecord>(
  query: PageQuery<M>,
  request: PageRequest,
): Promise<RecordPage<M>> {
  const { limit, offset, order } = request;
  const total = await query.clone().resultSize();
  const ordered = order.reduce((sorted, { field, direction }) => sorted.orderBy(field, direction), query);
  return { items: (await ordered.limit(limit).offset(offset)) as M[], pagination: { total, limit, offset } };
}
