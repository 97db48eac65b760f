/**
 * Lists and searches (api conventions, "Lists and search"): one envelope, one grammar of paging, filters, sorting,
 * metadata and expansion for every resource. GET lists take it from the query string, POST …/search from the body.
 */
import type { Model, QueryBuilder } from 'objection';
import { z } from 'zod';
import { anyCase, STATUSES } from '../core/catalogue/record.ts';
import { invalid } from '../core/error.ts';

/** How a column of a resource may be filtered and sorted by. */
export type ColumnKind = 'string' | 'number' | 'date' | 'boolean';

/** What a resource says once about its lists. */
export type ListGrammar = {
  /** Columns that `filters` and `sort` may name. */
  columns: Readonly<Record<string, ColumnKind>>;
  /** Paths that `expand` may name. */
  expand?: readonly string[];
  /** Whether `metadata` pairs may be asked for. */
  metadata?: boolean;
};

const whole = (name: string) => z.coerce.number({ error: `${name} must be a whole number` }).int();

/** `a,b`, `['a','b']` and repeated keys are the same list. */
export const textList = z.preprocess(
  (value) =>
    typeof value === 'string'
      ? value
          .split(',')
          .map((part) => part.trim())
          .filter(Boolean)
      : value,
  z.array(z.string()),
);

const FilterCondition = z.object({
  field: z.string(),
  operator: z.enum(['eq', 'contains', 'not_contains', 'gt', 'lt', 'gte', 'in', 'not_in', 'before', 'after']),
  data_type: z.enum(['string', 'number', 'date', 'array']),
  value: z.object({
    string: z.string().nullish(),
    number: z.number().nullish(),
    boolean: z.boolean().nullish(),
    date: z.iso.datetime({ offset: true }).nullish(),
    array: z.array(z.string()).nullish(),
  }),
});
export type FilterCondition = z.infer<typeof FilterCondition>;

const SortCondition = z.object({ field: z.string(), direction: anyCase(['asc', 'desc']) });

/** A JSON text in a query string, or the value itself in a body. */
const jsonOr = <S extends z.ZodType>(shape: S) =>
  z.preprocess((value, context) => {
    if (typeof value !== 'string') return value;
    try {
      return JSON.parse(value);
    } catch {
      context.issues.push({ code: 'custom', message: 'must be JSON', input: value });
      return z.NEVER;
    }
  }, shape);

const commonShape = {
  limit: whole('limit').min(1).max(1000).default(50),
  offset: whole('offset').min(0).default(0),
  status: anyCase(STATUSES).optional(),
  order: anyCase(['asc', 'desc']).default('desc'),
  expand: textList.optional(),
  start_time: z.iso.datetime({ offset: true }).optional(),
  end_time: z.iso.datetime({ offset: true }).optional(),
  filters: jsonOr(z.array(FilterCondition)).optional(),
  sort: z.union([z.array(SortCondition), z.string()]).optional(),
  metadata: z.record(z.string(), z.string()).optional(),
};

/** The request shape of a list: the common filter and what the resource adds. */
export function listShape<S extends z.ZodRawShape>(extra: S) {
  return z.object({ ...commonShape, ...extra });
}
export type ListInput = z.infer<z.ZodObject<typeof commonShape>>;

export const Pagination = z
  .object({ total: z.int(), limit: z.int(), offset: z.int() })
  .meta({ id: 'PaginationResponse' });

/** `{items, pagination}` */
export function listAnswer<S extends z.ZodType>(item: S, id: string) {
  return z.object({ items: z.array(item), pagination: Pagination }).meta({ id });
}

export type Page<M> = { items: M[]; pagination: { total: number; limit: number; offset: number } };

/** Applies the common grammar to a scoped query and fetches one page with its total. */
export async function fetchPage<M extends Model>(
  query: QueryBuilder<M, M[]>,
  input: ListInput,
  grammar: ListGrammar,
): Promise<Page<M>> {
  checkExpand(input.expand ?? [], grammar);
  applyCommon(query, input, grammar);
  const total = Number(await query.clone().resultSize());
  applySort(query, input, grammar);
  const items = (await query.limit(input.limit).offset(input.offset)) as unknown as M[];
  return { items, pagination: { total, limit: input.limit, offset: input.offset } };
}

/** Paths outside the resource's list are refused, never ignored. */
export function checkExpand(paths: readonly string[], grammar: ListGrammar): void {
  for (const path of paths) {
    if (!grammar.expand?.includes(path)) {
      throw invalid('expand', `${path} cannot be expanded here`, { allowed: grammar.expand ?? [] });
    }
  }
}

function applyCommon<M extends Model>(query: QueryBuilder<M, M[]>, input: ListInput, grammar: ListGrammar): void {
  query.where('status', input.status ?? 'published');
  if (input.start_time) query.where('created_at', '>=', input.start_time);
  if (input.end_time) query.where('created_at', '<=', input.end_time);
  if (input.start_time && input.end_time && Date.parse(input.end_time) < Date.parse(input.start_time)) {
    throw invalid('end_time', 'must not be before start_time');
  }
  for (const condition of input.filters ?? []) applyFilter(query, condition, grammar);
  if (input.metadata) {
    if (!grammar.metadata) throw invalid('metadata', 'this resource cannot be filtered by metadata');
    query.whereRaw('metadata @> ?::jsonb', [JSON.stringify(input.metadata)]);
  }
}

function columnKind(field: string, grammar: ListGrammar, name: string): ColumnKind {
  const kind = Object.hasOwn(grammar.columns, field) ? grammar.columns[field] : undefined;
  if (!kind) throw invalid(name, `unknown field ${field}`, { allowed: Object.keys(grammar.columns) });
  return kind;
}

const OPERATORS: Record<
  FilterCondition['operator'],
  { types: FilterCondition['data_type'][]; sql: string; value?: (v: unknown) => unknown }
> = {
  eq: { types: ['string', 'number', 'date'], sql: '?? = ?' },
  contains: { types: ['string'], sql: '?? ilike ?', value: like },
  not_contains: { types: ['string'], sql: '?? not ilike ?', value: like },
  gt: { types: ['number'], sql: '?? > ?' },
  lt: { types: ['number'], sql: '?? < ?' },
  gte: { types: ['number'], sql: '?? >= ?' },
  in: { types: ['array'], sql: '?? = any(?)' },
  not_in: { types: ['array'], sql: '?? <> all(?)' },
  before: { types: ['date'], sql: '?? < ?' },
  after: { types: ['date'], sql: '?? > ?' },
};

/** A value as the middle of an ILIKE pattern: its own % and _ are text. */
function like(value: unknown): string {
  return `%${String(value).replace(/[\\%_]/g, (sign) => `\\${sign}`)}%`;
}

function applyFilter<M extends Model>(
  query: QueryBuilder<M, M[]>,
  condition: FilterCondition,
  grammar: ListGrammar,
): void {
  const { field, operator, data_type, value } = condition;
  const kind = columnKind(field, grammar, 'filters');
  const rule = OPERATORS[operator];
  const given = value.boolean ?? value[data_type];
  if (!rule.types.includes(data_type) || given === null || given === undefined) {
    throw invalid('filters', `${operator} on ${field} needs a value of type ${rule.types.join(' or ')}`, { condition });
  }
  const wanted: ColumnKind = data_type === 'array' ? 'string' : value.boolean == null ? data_type : 'boolean';
  if (wanted !== kind) throw invalid('filters', `${field} is a ${kind}, not a ${wanted}`, { condition });
  query.whereRaw(rule.sql, [field, rule.value ? rule.value(given) : given] as never);
}

function applySort<M extends Model>(query: QueryBuilder<M, M[]>, input: ListInput, grammar: ListGrammar): void {
  const conditions =
    typeof input.sort === 'string'
      ? [{ field: input.sort, direction: input.order }]
      : (input.sort ?? [{ field: 'created_at', direction: input.order }]);
  for (const { field, direction } of conditions) {
    if (field !== 'created_at') columnKind(field, grammar, 'sort');
    query.orderBy(field, direction);
  }
  // The id makes pages stable when the sorted column repeats.
  query.orderBy('id', conditions.at(-1)?.direction ?? 'desc');
}
