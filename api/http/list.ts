/**
 * Lists and searches of all resources share one envelope and one grammar of paging, filters, sorting, metadata and expansion. GET lists
 * read it from the query string, POST …/search from the body.
 */

import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';
import { parseJson } from '../../core/foundation/json/parse.ts';
import { anyCase, STATUSES, timestampText, wholeNumberOr } from '../../core/foundation/record.ts';
import { LIST_MAX } from '../../core/foundation/texts.ts';
import { toInstant } from '../../core/foundation/time/instant.ts';
import {
  type Condition,
  loadPage,
  narrow,
  type Operator,
  type PageQuery,
  type PageRecord,
  type RecordPage,
} from '../../storage/models/foundation/page.ts';
import { listEnumValues, normalizeEnumValue } from './enum-values.ts';

/** Type of a column for filters and sorting. */
type ColumnKind = 'string' | 'number' | 'date' | 'boolean';

/** Names that requests for lists of a resource may use. Declared once per resource. */
export type ListGrammar = {
  /** Columns that `filters` and `sort` may name. */
  columns: Readonly<Record<string, ColumnKind>>;
  /** Paths that `expand` may name. */
  expand?: readonly string[];
  /** True if records can be filtered by `metadata` pairs. */
  metadata?: boolean;
};

/** Columns of every record. */
export const BASE_COLUMNS = {
  id: 'string',
  status: 'string',
  created_at: 'date',
  updated_at: 'date',
  created_by: 'string',
  updated_by: 'string',
} as const satisfies ListGrammar['columns'];

const whole = (range: string) => wholeNumberOr(`must be a whole number ${range}`);

/** A list of texts: `a,b`, `['a','b']` and repeated keys are equal. */
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
  field: z.string().meta({ description: 'Column of the record. An unknown column is refused.' }),
  operator: z.enum(['eq', 'contains', 'not_contains', 'gt', 'lt', 'gte', 'in', 'not_in', 'before', 'after']).meta({
    description:
      'Comparison of the column with the value. `before` and `after` need a date, `in` and `not_in` an array.',
  }),
  data_type: z
    .enum(['string', 'number', 'date', 'array'])
    .meta({ description: 'Type of the value; names the key of `value` that is compared.' }),
  value: z
    .object({
      string: z.string().nullish().meta({ description: 'Text to compare with; used if `data_type` is string.' }),
      number: z.number().nullish().meta({ description: 'Number to compare with; used if `data_type` is number.' }),
      boolean: z
        .boolean()
        .nullish()
        .meta({ description: 'Truth value for a boolean column; used regardless of `data_type`.' }),
      date: timestampText.nullish().meta({ description: 'Instant to compare with; used if `data_type` is date.' }),
      array: z
        .array(z.string())
        .nullish()
        .meta({ description: 'Values for `in` and `not_in`; used if `data_type` is array.' }),
    })
    .meta({ description: 'Value to compare the column with, in the key that `data_type` names.' }),
});
type FilterCondition = z.infer<typeof FilterCondition>;

/** Maximum number of conditions. Each is evaluated per record: eight thousand of them occupied a connection for twenty seconds. */
const CONDITIONS_MAX = 100;

const SortCondition = z.object({
  field: z.string().meta({ description: 'Column of the record. An unknown column is refused.' }),
  direction: anyCase(['asc', 'desc']).meta({ description: 'Ascending or descending order.' }),
});

/** JSON text in a query string, or the value itself in a body. */
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

/** List of items, or text with commas between them. */
export const commaSeparatedList = <S extends z.ZodType>(item: S) =>
  z.preprocess(
    (input) => (typeof input === 'string' ? input.split(',').map((part) => part.trim()) : input),
    z.array(item),
  );

/** Boolean; a query string has it as text. */
export const flag = z.union([z.boolean(), z.stringbool({ truthy: ['true'], falsy: ['false'] })]);

/** Related records to include in the answer. */
export const expand = textList.optional().meta({
  description:
    'Related records to include in the answer, separated by commas, such as `prices.meters`. A path that the ' +
    'resource does not have is refused.',
});

/** Cursor of a request; an empty one counts as absent. */
export const listCursor = z
  .string()
  .optional()
  .transform((text) => text || undefined);

const commonShape = {
  limit: whole('from 1 to 1000')
    .pipe(z.int().min(1).max(1000))
    .default(50)
    .meta({ description: 'Maximum number of records on a page, from 1 to 1000. Default 50.' }),
  offset: whole('not below 0')
    .pipe(z.int().min(0))
    .default(0)
    .meta({ description: 'Number of records to skip before the page. Default 0.' }),
  cursor: listCursor.meta({
    description:
      '`next_cursor` of an answer, for the page after it, which neither repeats nor skips a record when others are added. Needs the same `sort` and `order`, and no `offset`.',
  }),
  status: anyCase(STATUSES).optional().meta({ description: 'Record status to match. Default published.' }),
  order: anyCase(['asc', 'desc'])
    .default('desc')
    .meta({ description: 'Direction of the column in `sort`, asc or desc. Default desc.' }),
  expand,
  start_time: timestampText.optional().meta({ description: 'Returns records created at this instant or later.' }),
  end_time: timestampText
    .optional()
    .meta({ description: 'Returns records created at this instant or earlier. Must not be before `start_time`.' }),
  filters: jsonOr(z.array(FilterCondition).max(CONDITIONS_MAX))
    .optional()
    .meta({ description: 'Conditions on columns, all of which must hold; 100 at most.' }),
  sort: z
    .union([z.array(SortCondition).max(CONDITIONS_MAX), z.string()])
    .optional()
    .meta({ description: 'Columns with their directions, or the name of one column. Default: time of creation.' }),
  metadata: z
    .record(z.string(), z.string())
    .optional()
    .meta({ description: 'Metadata pairs that must all match. Refused for records without metadata.' }),
};

/** Filter that matches any of the listed values. */
export const matchAny = (these: string) => textList.optional().meta({ description: `Matches any of these ${these}.` });

/** Request shape of a list: the common filter plus the fields of the resource. */
export function listShape<S extends z.ZodRawShape>(extra: S) {
  return z.object({ ...commonShape, ...extra });
}

/** Query string form of the filter: `filters` as JSON text, `sort` as a column, `metadata[key]=value`. */
const inQueryString = {
  filters: z.string().optional().meta({
    description: 'JSON array of conditions with the keys field, operator, data_type and value.',
    example: '[{"field":"id","operator":"in","data_type":"array","value":{"array":["a","b"]}}]',
  }),
  sort: z
    .string()
    .optional()
    .meta({ description: 'Column to sort by; `order` sets the direction.', example: 'created_at' }),
  metadata: commonShape.metadata.meta({
    param: { style: 'deepObject', explode: true },
  }),
};

/** Describes a list shape in its query string form; other shapes are unchanged. */
export function describeInQuery(shape: z.ZodType): z.ZodType {
  return shape instanceof z.ZodObject && shape.shape.filters === commonShape.filters
    ? shape.extend(inQueryString)
    : shape;
}
/** Page of a list of which the published client sends no page, and expects all records. */
export function buildWholeListPage(these: string) {
  const { limit, offset, cursor } = commonShape;
  return z.object({
    limit: limit
      .unwrap()
      .default(1000)
      .meta({ description: `Maximum number of ${these} per page, 1 to 1,000. Default: 1,000.` }),
    offset,
    cursor,
  });
}

type ListInput = z.infer<z.ZodObject<typeof commonShape>>;

export const Pagination = z
  .object({
    total: z.int().meta({ description: 'Total number of records that meet the conditions.' }),
    limit: z.int().meta({ description: 'Maximum number of records on a page.' }),
    offset: z.int().meta({ description: 'Number of records skipped before the page.' }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: '`cursor` of the next page; null on the last one, and in lists without cursors.' }),
  })
  .meta({ id: 'PaginationResponse' });

/** Builds the answer of a list, `{items, pagination}`. */
export function listAnswer<S extends z.ZodType>(item: S, id: string) {
  const items = z.array(item).meta({ description: 'One page of the records that meet the conditions.' });
  return z
    .object({ items, pagination: Pagination.meta({ description: 'Position of the page in the result.' }) })
    .meta({ id });
}

/** Applies the common grammar to a scoped query and fetches one page with its total. */
export async function fetchPage<M extends PageRecord>(
  query: PageQuery<M>,
  input: ListInput,
  grammar: ListGrammar,
): Promise<RecordPage<M>> {
  checkExpand(input.expand ?? [], grammar);
  const { limit, offset, cursor } = input;
  const { record } = query.modelClass() as { record?: z.ZodObject };
  const conditions = buildConditions(input, grammar, record);
  return loadPage(narrow(query, conditions), { limit, offset, cursor, order: buildOrder(input, grammar) });
}

/** Refuses an unknown path, which is never ignored. */
export function checkExpand(paths: readonly string[], grammar: ListGrammar): void {
  for (const path of paths) {
    if (!grammar.expand?.includes(path)) {
      throw invalid('expand', `${path} cannot be expanded here`, { allowed: grammar.expand ?? [] });
    }
  }
}

/** Builds the conditions. `record` provides the enum values of the columns. */
function buildConditions(input: ListInput, grammar: ListGrammar, record: z.ZodObject | undefined): Condition[] {
  const { start_time, end_time, filters = [], metadata } = input;
  // A condition on the status replaces the default, which would otherwise leave nothing to find.
  const hasStatus = filters.some(({ field }) => field === 'status');
  const status = input.status ?? (hasStatus ? undefined : 'published');
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
  // The error names the condition without its value, which may be ten thousand ids.
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

/** Operators that compare the whole value. The other text operators match a part of the text, in any case. */
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
