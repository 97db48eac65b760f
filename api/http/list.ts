/**
 * Lists and searches: one envelope, one grammar of paging, filters, sorting, metadata and expansion for every resource. GET
 * lists take it from the query string, POST …/search from the body.
 */

import { z } from 'zod';
import { invalid } from '../../core/error.ts';
import { parseJson } from '../../core/json/parse.ts';
import { anyCase, STATUSES, timestampText, wholeNumberOr } from '../../core/record.ts';
import { LIST_MAX } from '../../core/texts.ts';
import { toInstant } from '../../core/time/instant.ts';
import {
  type Condition,
  loadPage,
  narrow,
  type Operator,
  type PageQuery,
  type PageRecord,
  type RecordPage,
} from '../../storage/models/page.ts';
import { listEnumValues, normalizeEnumValue } from './enum-values.ts';

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

/** The columns of every record. */
export const BASE_COLUMNS = {
  id: 'string',
  status: 'string',
  created_at: 'date',
  updated_at: 'date',
  created_by: 'string',
  updated_by: 'string',
} as const satisfies ListGrammar['columns'];

const whole = (range: string) => wholeNumberOr(`must be a whole number ${range}`);

/** `a,b`, `['a','b']` and repeated keys are the same list. */
export const textList = z.preprocess(
  (value) =>
    typeof value === 'string'
      ? value
          .split(',')
          .map((part) => part.trim())
          .filter(Boolean)
      : value,
  z.array(z.string()).max(LIST_MAX, { error: `must not have more than ${LIST_MAX} entries` }),
);

const FilterCondition = z.object({
  field: z.string().meta({ description: 'A column of the record.' }),
  operator: z
    .enum(['eq', 'contains', 'not_contains', 'gt', 'lt', 'gte', 'in', 'not_in', 'before', 'after'])
    .meta({ description: 'How the column compares with the value.' }),
  data_type: z.enum(['string', 'number', 'date', 'array']).meta({ description: 'Which key of `value` is compared.' }),
  value: z
    .object({
      string: z.string().nullish().meta({ description: 'Of a text, when `data_type` is string.' }),
      number: z.number().nullish().meta({ description: 'Of a number, when `data_type` is number.' }),
      boolean: z
        .boolean()
        .nullish()
        .meta({ description: 'Of a column that is true or false, whatever `data_type` is.' }),
      date: timestampText.nullish().meta({ description: 'Of an instant, when `data_type` is date.' }),
      array: z.array(z.string()).nullish().meta({ description: 'Of `in` and `not_in`, when `data_type` is array.' }),
    })
    .meta({ description: 'What the column is compared with: the one key that `data_type` names.' }),
});
export type FilterCondition = z.infer<typeof FilterCondition>;

/** Each is looked at for every record: eight thousand kept a connection for twenty seconds. */
const CONDITIONS_MAX = 100;

const SortCondition = z.object({
  field: z.string().meta({ description: 'A column of the record.' }),
  direction: anyCase(['asc', 'desc']).meta({ description: 'From the least or from the greatest.' }),
});

/** A JSON text in a query string, or the value itself in a body. */
const jsonOr = <S extends z.ZodType>(shape: S) =>
  z.preprocess((value, context) => {
    if (typeof value !== 'string') return value;
    try {
      return parseJson(value);
    } catch {
      context.issues.push({ code: 'custom', message: 'must be JSON', input: value });
      return z.NEVER;
    }
  }, shape);

/** Each of them one of these, in a list or between commas. */
export const commaSeparatedList = <S extends z.ZodType>(item: S) =>
  z.preprocess(
    (input) => (typeof input === 'string' ? input.split(',').map((part) => part.trim()) : input),
    z.array(item),
  );

/** Yes or no, also as a query string has it. */
export const flag = z.union([z.boolean(), z.stringbool({ truthy: ['true'], falsy: ['false'] })]);

/** What is answered beside the record itself. */
export const expand = textList
  .optional()
  .meta({ description: 'Related records to answer with, such as `prices.meters`, between commas.' });

const commonShape = {
  limit: whole('from 1 to 1000')
    .pipe(z.int().min(1).max(1000))
    .default(50)
    .meta({ description: 'How many records a page has at most.' }),
  offset: whole('not below 0')
    .pipe(z.int().min(0))
    .default(0)
    .meta({ description: 'How many records to leave out before the page.' }),
  status: anyCase(STATUSES).optional().meta({ description: 'Published records when absent.' }),
  order: anyCase(['asc', 'desc']).default('desc').meta({ description: 'Of the column in `sort`.' }),
  expand,
  start_time: timestampText.optional().meta({ description: 'Created at this instant or later.' }),
  end_time: timestampText.optional().meta({ description: 'Created before this instant or at it.' }),
  filters: jsonOr(z.array(FilterCondition).max(CONDITIONS_MAX))
    .optional()
    .meta({ description: 'Conditions on columns, which all must hold.' }),
  sort: z
    .union([z.array(SortCondition).max(CONDITIONS_MAX), z.string()])
    .optional()
    .meta({ description: 'Columns with their directions, or one column; by the time of creation when absent.' }),
  metadata: z
    .record(z.string(), z.string())
    .optional()
    .meta({ description: 'Pairs that all must match; refused for records without metadata.' }),
};

/** The condition of a list that what it names is one of these. */
export const matchAny = (these: string) => textList.optional().meta({ description: `Any of these ${these}.` });

/** The request shape of a list: the common filter and what the resource adds. */
export function listShape<S extends z.ZodRawShape>(extra: S) {
  return z.object({ ...commonShape, ...extra });
}

/** How the same is written in a query string: `filters` as JSON text, `sort` as a column, `metadata[key]=value`. */
const inQueryString = {
  filters: z.string().optional().meta({
    description: 'A JSON array of conditions: field, operator, data_type, value.',
    example: '[{"field":"id","operator":"in","data_type":"array","value":{"array":["a","b"]}}]',
  }),
  sort: z
    .string()
    .optional()
    .meta({ description: 'A column; `order` says in which direction.', example: 'created_at' }),
  metadata: commonShape.metadata.meta({
    param: { style: 'deepObject', explode: true },
  }),
};

/** The shape of a list as a query string is described with it; any other shape as it is. */
export function describeInQuery(shape: z.ZodType): z.ZodType {
  return shape instanceof z.ZodObject && shape.shape.filters === commonShape.filters
    ? shape.extend(inQueryString)
    : shape;
}
export type ListInput = z.infer<z.ZodObject<typeof commonShape>>;

export const Pagination = z
  .object({
    total: z.int().meta({ description: 'How many records meet the conditions in all.' }),
    limit: z.int().meta({ description: 'How many a page has at most.' }),
    offset: z.int().meta({ description: 'How many were left out before the page.' }),
  })
  .meta({ id: 'PaginationResponse' });

/** `{items, pagination}` */
export function listAnswer<S extends z.ZodType>(item: S, id: string) {
  const items = z.array(item).meta({ description: 'A page of the records that meet the conditions.' });
  return z
    .object({ items, pagination: Pagination.meta({ description: 'Where the page stands among them.' }) })
    .meta({ id });
}

/** Applies the common grammar to a scoped query and fetches one page with its total. */
export async function fetchPage<M extends PageRecord>(
  query: PageQuery<M>,
  input: ListInput,
  grammar: ListGrammar,
): Promise<RecordPage<M>> {
  checkExpand(input.expand ?? [], grammar);
  const { limit, offset } = input;
  const { record } = query.modelClass() as { record?: z.ZodObject };
  const conditions = buildConditions(input, grammar, record);
  return loadPage(narrow(query, conditions), { limit, offset, order: buildOrder(input, grammar) });
}

/** Paths outside the resource's list are refused, never ignored. */
export function checkExpand(paths: readonly string[], grammar: ListGrammar): void {
  for (const path of paths) {
    if (!grammar.expand?.includes(path)) {
      throw invalid('expand', `${path} cannot be expanded here`, { allowed: grammar.expand ?? [] });
    }
  }
}

/** `record` says which columns have fixed words. */
function buildConditions(input: ListInput, grammar: ListGrammar, record: z.ZodObject | undefined): Condition[] {
  const { status = 'published', start_time, end_time, filters = [], metadata } = input;
  if (start_time && end_time && toInstant(end_time) < toInstant(start_time))
    throw invalid('end_time', 'must not be before start_time');
  if (metadata && !grammar.metadata) throw invalid('metadata', 'this resource cannot be filtered by metadata');
  return [
    ['status', status],
    ['created_at', '>=', start_time],
    ['created_at', '<=', end_time],
    ...filters.map((filter) => buildCondition(filter, grammar, record)),
    ['metadata', 'includes', metadata],
  ];
}

function columnKind(field: string, grammar: ListGrammar, name: string): ColumnKind {
  const kind = Object.hasOwn(grammar.columns, field) ? grammar.columns[field] : undefined;
  if (!kind) throw invalid(name, `unknown field ${field}`, { allowed: Object.keys(grammar.columns) });
  return kind;
}

const OPERATORS: Record<FilterCondition['operator'], { types: FilterCondition['data_type'][]; operator: Operator }> = {
  eq: { types: ['string', 'number', 'date'], operator: '=' },
  contains: { types: ['string'], operator: 'contains' },
  not_contains: { types: ['string'], operator: 'contains not' },
  gt: { types: ['number'], operator: '>' },
  lt: { types: ['number'], operator: '<' },
  gte: { types: ['number'], operator: '>=' },
  in: { types: ['array'], operator: 'in' },
  not_in: { types: ['array'], operator: 'not in' },
  before: { types: ['date'], operator: '<' },
  after: { types: ['date'], operator: '>' },
};

function buildCondition(filter: FilterCondition, grammar: ListGrammar, record: z.ZodObject | undefined): Condition {
  const { field, operator, data_type, value } = filter;
  const kind = columnKind(field, grammar, 'filters');
  const rule = OPERATORS[operator];
  const given = value.boolean ?? value[data_type];
  // Which condition it is, without the value: that may be ten thousand ids.
  const which = { filter: { field, operator, data_type } };
  if (!rule.types.includes(data_type) || given === null || given === undefined) {
    throw invalid('filters', `${operator} on ${field} needs a value of type ${rule.types.join(' or ')}`, which);
  }
  const wanted: ColumnKind = typeof given === 'boolean' ? 'boolean' : data_type === 'array' ? 'string' : data_type;
  if (wanted !== kind) throw invalid('filters', `${field} is a ${kind}, not a ${wanted}`, which);
  const enumValues = WHOLE_VALUE_OPERATORS.includes(operator) ? listEnumValues(record?.shape[field]) : null;
  const asSpelled = (one: string) => (enumValues ? normalizeEnumValue(one, { field, words: enumValues }) : one);
  if (typeof given === 'string') return [field, rule.operator, asSpelled(given)];
  return [field, rule.operator, Array.isArray(given) ? given.map(asSpelled) : given];
}

/** The others look for a part of a text, in any case. */
const WHOLE_VALUE_OPERATORS: readonly FilterCondition['operator'][] = ['eq', 'in', 'not_in'];

function buildOrder(input: ListInput, grammar: ListGrammar): z.output<typeof SortCondition>[] {
  const conditions =
    typeof input.sort === 'string'
      ? [{ field: input.sort, direction: input.order }]
      : (input.sort ?? [{ field: 'created_at', direction: input.order }]);
  for (const { field } of conditions) if (field !== 'created_at') columnKind(field, grammar, 'sort');
  // The id makes pages stable when the sorted column repeats.
  return [...conditions, { field: 'id', direction: conditions.at(-1)?.direction ?? 'desc' }];
}
