/** Loads one page of a table. The filters of a list are data, so that routes contain no SQL. */
import { type Model, type QueryBuilder, raw } from 'objection';
import { z } from 'zod';
import { formatCursor, parseCursor } from '../../../core/foundation/cursor.ts';
import { invalid } from '../../../core/foundation/error.ts';

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

type PageOrder = readonly { readonly field: string; readonly direction: 'asc' | 'desc' }[];
/** Order of the lists that have no `sort`. */
export const NEWEST_FIRST: PageOrder = [
  { field: 'created_at', direction: 'desc' },
  { field: 'id', direction: 'desc' },
];
type PageRequest = {
  readonly limit: number;
  readonly offset: number;
  /** `next_cursor` of the page before, in the same order. */
  readonly cursor?: string | undefined;
  /** Must end with a column that never repeats, such as the id. */
  readonly order: PageOrder;
};
type PagePosition = {
  readonly total: number;
  readonly limit: number;
  readonly offset: number;
  /** Null on the last page. */
  readonly next_cursor: string | null;
};
export type RecordPage<M> = { items: M[]; pagination: PagePosition };

/**
 * Loads a page and the number of all records. The builder makes the conditions once for both statements, because that takes longer than the
 * answer of Postgres.
 */
export async function loadPage<M extends PageRecord>(
  query: PageQuery<M>,
  { limit, offset, cursor, order }: PageRequest,
): Promise<RecordPage<M>> {
  if (cursor !== undefined && offset > 0) throw invalid('offset', 'must not be sent with a cursor');
  const { sql, bindings } = query.toKnexQuery().toSQL();
  const database = query.knex();
  const model = query.modelClass();
  const after = cursor === undefined ? null : buildAfter(order, parsePlace(cursor, order));
  const { rows } = await database.raw(
    `select found.*, ${selectPlace(order)} as page_place from (${sql}) as found ${after ? `where ${after.sql}` : ''}
      order by ${order.map(toOrderTerm).join(', ')} limit ? offset ?`,
    // One more row is loaded, to know whether another page follows.
    [...bindings, ...(after?.bound ?? []), limit + 1, offset] as never,
  );
  const next_cursor = rows.length > limit ? formatCursor([describeOrder(order), ...rows[limit - 1].page_place]) : null;
  const items = rows
    .slice(0, limit)
    .map(({ page_place: _place, ...row }: { page_place: Place }) => model.fromDatabaseJson(row)) as M[];
  // The number of records is known if this is the last page, and not an empty one after an offset or cursor.
  if (next_cursor === null && cursor === undefined && (items.length > 0 || offset === 0))
    return { items, pagination: { total: offset + items.length, limit, offset, next_cursor } };
  const counted = await database.raw(`select count(*) from (${sql}) as found`, bindings as never);
  return { items, pagination: { total: Number(counted.rows[0].count), limit, offset, next_cursor } };
}

/** The columns are names of a grammar. */
function toOrderTerm({ field, direction }: PageOrder[number]): string {
  return `"${field}" ${direction}`;
}

/** Values of the ordered columns of a row, as texts of Postgres: a JS date would lose the microseconds. */
type Place = readonly (string | null)[];

function selectPlace(order: PageOrder): string {
  return `array[${order.map(({ field }) => `"${field}"::text`).join(', ')}]`;
}

type Sql = { readonly sql: string; readonly bound: readonly (string | null)[] };

/**
 * Condition of the rows after a place. Postgres sorts null last in ascending order, and first in descending order. The outer comparison
 * follows from the inner ones, and lets Postgres use the index of the first column.
 */
function buildAfter([column, ...others]: PageOrder, [value = null, ...values]: Place): Sql {
  const { field, direction } = column!;
  const comparisons = COMPARISONS[direction][value === null ? 'null' : 'value'];
  const [notBefore, after] = comparisons.map((sql) => sql.replaceAll('??', `"${field}"`)) as [string, string];
  const bind = (sql: string) => [...sql.matchAll(/\?/g)].map(() => value);
  if (others.length === 0) return { sql: after, bound: bind(after) };
  const rest = buildAfter(others, values);
  return {
    sql: `(${notBefore} and (${after} or ${rest.sql}))`,
    bound: [...bind(notBefore), ...bind(after), ...rest.bound],
  };
}

const COMPARISONS = {
  asc: { value: ['(?? >= ? or ?? is null)', '(?? > ? or ?? is null)'], null: ['?? is null', 'false'] },
  desc: { value: ['?? <= ?', '?? < ?'], null: ['true', '?? is not null'] },
} as const;

/** A cursor has the order and the place of the last row of its page. */
function parsePlace(cursor: string, order: PageOrder): Place {
  const [described, ...place] = parseCursor(cursor, (parts) => Parts.parse(parts));
  if (described !== describeOrder(order) || place.length !== order.length)
    throw invalid('cursor', 'belongs to another sort order');
  return place;
}

/** Postgres takes no text with a zero character. */
const Parts = z.array(
  z
    .string()
    .regex(/^[^\0]*$/)
    .nullable(),
);

function describeOrder(order: PageOrder): string {
  return order.map(({ field, direction }) => `${field} ${direction}`).join();
}
