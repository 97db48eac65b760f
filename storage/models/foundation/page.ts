/** Loads one page of a table. The filters of a list are data, so that routes contain no SQL. */
import { type Model, type QueryBuilder, raw } from 'objection';

export type PageRecord = Model;
export type PageQuery<M extends PageRecord> = QueryBuilder<M, M[]>;

/** SQL of each operator. `??` is the column, `?` the value. */
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
  /** The two lists have an element in common. */
  overlaps: '?? && ?::text[]',
  /** The map in the column has all pairs of the given map. */
  includes: '?? @> ?::jsonb',
  /** The instant in the column is null, i.e. never ends, or is after the given one. */
  'open at': '(?? is null or ?? > ?)',
} as const;
export type Operator = keyof typeof SQL;

/**
 * Filter of a list. Undefined and null are ignored. Without an operator a value must be equal, and a list must contain
 * the column's value; '' and the empty list are ignored, too.
 */
export type Condition =
  | readonly [column: string, value: unknown]
  | readonly [column: string, operator: Operator, value: unknown];

/** An SQL condition and its parameters. */
export type SqlCondition = readonly [sql: string, bound: readonly string[]];

/** Applies every condition with a value. */
export function narrow<M extends PageRecord>(query: PageQuery<M>, conditions: readonly Condition[]): PageQuery<M> {
  return conditions.reduce((narrowed, condition) => {
    const [column, operator, value] = condition.length === 2 ? withOperator(...condition) : condition;
    if (value === undefined || value === null) return narrowed;
    // The cast is necessary, because an integer column cannot be compared with a fraction.
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
  // % and _ in the value are literal text.
  return `%${String(value).replace(/[\\%_]/g, (sign) => `\\${sign}`)}%`;
}

type PageRequest = {
  readonly limit: number;
  readonly offset: number;
  readonly order: readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
};
export type RecordPage<M> = { items: M[]; pagination: { total: number; limit: number; offset: number } };

/**
 * Loads a page and the number of all records. The builder makes the conditions once for both statements, because that takes longer than the
 * answer of Postgres.
 */
export async function loadPage<M extends PageRecord>(
  query: PageQuery<M>,
  { limit, offset, order }: PageRequest,
): Promise<RecordPage<M>> {
  const { sql, bindings } = query.toKnexQuery().toSQL();
  const database = query.knex();
  const model = query.modelClass();
  const sorted = order.length === 0 ? '' : ` order by ${order.map(toOrderTerm).join(', ')}`;
  const page = await database.raw(`${sql}${sorted} limit ? offset ?`, [...bindings, limit, offset] as never);
  const items = page.rows.map((row: object) => model.fromDatabaseJson(row)) as M[];
  // Only a full page, or one after the last record, leaves open how many records there are.
  if (items.length < limit && (items.length > 0 || offset === 0))
    return { items, pagination: { total: offset + items.length, limit, offset } };
  const { rows } = await database.raw(`select count(*) from (${sql}) as found`, bindings as never);
  return { items, pagination: { total: Number(rows[0].count), limit, offset } };
}

/** The columns are names of a grammar. */
function toOrderTerm({ field, direction }: PageRequest['order'][number]): string {
  return `"${field}" ${direction}`;
}
