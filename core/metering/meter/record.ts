/**
 * A meter selects events and aggregates them (docs/rules/metering.md, "Which events count", docs/rules/metering.md, "The value of an
 * event", docs/rules/metering.md, "Aggregations"). An expression replaces the field. Windows are for SUM and MAX only, groups for MAX with
 * windows only (docs/rules/metering.md, "Meters with windows of their own").
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import {
  anyCase,
  BLANK,
  baseFields,
  decimalText,
  isBlank,
  keyText,
  orDefault,
  orNull,
  toEnumValues,
} from '../../foundation/record.ts';
import { WINDOW_SIZES } from '../../foundation/time/window.ts';
import type { MeterAggregator as AggregationRules } from '../aggregations/aggregation.ts';
import { AGGREGATIONS, type AggregationType } from '../aggregations/index.ts';
import { formatTypesTaking, formatTypesWithoutValue, listAggregationTypes } from '../aggregations/list-types.ts';
import { explainAmbiguousName, explainDottedField } from '../expression/property-names.ts';

/** Names of all aggregation types. A new type is a file and a line in `core/metering/aggregations/`. */
export const AGGREGATION_TYPES = toEnumValues<AggregationType>(AGGREGATIONS);
export type { AggregationType };

export const RESET_USAGES = ['BILLING_PERIOD', 'NEVER'] as const;

export const windowSize = anyCase(WINDOW_SIZES);
export const aggregationType = anyCase(AGGREGATION_TYPES);

export const aggregationShape = z.object({
  type: aggregationType.meta({ description: 'Type of the aggregation of event values.' }),
  field: orNull(keyText).meta({
    description: `Name of the property that contains the value, at most 255 characters. A path, such as \`usage.tokens\`, is refused where the value is a number: it needs an expression. All types except ${formatTypesWithoutValue()} need a field or an expression.`,
  }),
  expression: orNull(z.string()).meta({
    description:
      'CEL expression over properties that replaces the field. `properties.usage.tokens` is a value inside an object, `properties["a/b"]` the property of that name. A missing property is 0.',
  }),
  multiplier: orNull(decimalText).meta({
    description: `Multiplier of ${formatTypesTaking('multiplier')}, where it is required; greater than 0. Refused for other types.`,
  }),
  bucket_size: orNull(windowSize).meta({
    description: `Window size for ${formatTypesTaking('bucket_size')}: each window is aggregated, and the windows are summed. Refused for other types.`,
  }),
  group_by: orNull(keyText).meta({
    description: `Property of the events. Each of its values has its own maximum, and the maxima are added up. Only for ${formatTypesTaking('group_by')} with a \`bucket_size\`; otherwise refused.`,
  }),
});
export type Aggregation = z.output<typeof aggregationShape>;

export const filterShape = z.object({
  key: keyText.meta({ description: 'Name of the property; it is a name, not a path.' }),
  values: z
    .array(z.string())
    .meta({ description: 'Allowed values, at least one. A number matches every notation of the same number.' }),
});
export type Filter = z.output<typeof filterShape>;

export const meterShape = z.object({
  id: z.string(),
  name: keyText.meta({ description: 'Display name of the meter.' }),
  // Event names are trimmed of leading and trailing whitespace at ingestion and at query time.
  event_name: z
    .string()
    .trim()
    .max(255)
    .meta({ description: 'Name of the events that the meter counts, at most 255 characters.' }),
  aggregation: aggregationShape.meta({ description: 'Aggregation of the events. It cannot be changed later.' }),
  filters: orDefault(z.array(filterShape), []).meta({
    description: 'Filters that an event must all match. Default: none.',
  }),
  reset_usage: orDefault(anyCase(RESET_USAGES), 'BILLING_PERIOD').meta({
    description:
      'BILLING_PERIOD starts each period at 0. NEVER counts usage since the start of the subscription. Default: BILLING_PERIOD.',
  }),
  ...baseFields,
});
export type Meter = z.output<typeof meterShape>;

/** Fields of a meter that a client sets. */
export const createMeterShape = meterShape.pick({
  name: true,
  event_name: true,
  aggregation: true,
  filters: true,
  reset_usage: true,
});
export type MeterInput = z.output<typeof createMeterShape>;

/** Throws if the expression is invalid. The expression engine compiles it. */
export type CompileExpression = (text: string) => unknown;

export function checkMeter(meter: MeterInput, compileExpression?: CompileExpression): void {
  const { name, event_name } = meter;
  refuseBlank({ name, event_name });
  checkAggregation(meter.aggregation, compileExpression);
  checkFilters(meter.filters);
}

/**
 * Refuses a field or an expression that nearly always means another property than it names, and would count nothing. Copies and older
 * meters are exempt.
 */
export function refuseUnclearNames({ type, field, expression }: Aggregation): void {
  if (hasText(expression)) {
    const reason = explainAmbiguousName(expression);
    if (reason !== undefined) throw invalid('aggregation.expression', reason);
  } else if (hasText(field) && AGGREGATIONS[type].value_kind === 'number') {
    const reason = explainDottedField(field);
    if (reason !== undefined) throw invalid('aggregation.field', reason);
  }
}

function checkAggregation(aggregation: Aggregation, compileExpression?: CompileExpression): void {
  const { type, field, expression, group_by } = aggregation;
  refuseBlank({ 'aggregation.field': field, 'aggregation.expression': expression, 'aggregation.group_by': group_by });
  if (AGGREGATIONS[type].value_kind !== 'none' && !hasText(field) && !hasText(expression))
    throw invalid('aggregation.field', `is required for ${type} unless an expression is given`);
  if (hasText(expression)) compileExpression?.(expression);
  checkMultiplier(aggregation);
  checkBuckets(aggregation);
}

/** A dot in a key is part of its name (docs/rules/metering.md, "Which events count"). */
export function checkFilters(filters: readonly Filter[]): void {
  for (const [index, filter] of filters.entries()) {
    refuseBlank({ [`filters[${index}].key`]: filter.key });
    if (filter.values.length === 0) throw invalid(`filters[${index}].values`, 'needs at least one value');
  }
}

/** A blank text identifies no property and no event. */
function refuseBlank(texts: Readonly<Record<string, string | null | undefined>>): void {
  for (const [field, text] of Object.entries(texts))
    if (typeof text === 'string' && isBlank(text)) throw invalid(field, BLANK.error);
}

function checkMultiplier({ type, multiplier }: Aggregation): void {
  if (!AGGREGATIONS[type].takes.includes('multiplier')) {
    if (hasText(multiplier))
      throw invalid('aggregation.multiplier', `is used by ${listSupportingTypes('multiplier')} only`);
    return;
  }
  if (!hasText(multiplier)) throw invalid('aggregation.multiplier', `is required for ${type}`);
  if (!new Decimal(multiplier).gt(0)) throw invalid('aggregation.multiplier', 'must be greater than 0');
}

function checkBuckets({ type, bucket_size, group_by }: Aggregation): void {
  const { takes } = AGGREGATIONS[type];
  if (bucket_size && !takes.includes('bucket_size'))
    throw invalid(
      'aggregation.bucket_size',
      `is supported for ${listSupportingTypes('bucket_size')} only, not for ${type}`,
    );
  if (hasText(group_by) && !(takes.includes('group_by') && bucket_size))
    throw invalid('aggregation.group_by', `is supported only for ${listSupportingTypes('group_by')} with bucket_size`);
}

/** Example: `MAX and SUM`. */
function listSupportingTypes(part: AggregationRules['takes'][number]): string {
  return listAggregationTypes(({ takes }) => takes.includes(part))
    .sort()
    .join(' and ');
}

function hasText(text: string | null | undefined): text is string {
  return text !== null && text !== undefined && text.trim() !== '';
}
