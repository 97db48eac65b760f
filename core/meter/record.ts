/**
 * A meter: which events count, and how they are aggregated (docs/rules/metering.md, "Which events count",
 * docs/rules/metering.md, "The value of an event", docs/rules/metering.md, "Aggregations"). An expression stands in for the
 * field; windows of its own are for SUM and MAX, groups for MAX with windows only
 * (docs/rules/metering.md, "Meters with windows of their own").
 */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import type { MeterAggregator as AggregationRules } from '../metering/aggregations/aggregation.ts';
import { AGGREGATIONS, type AggregationType } from '../metering/aggregations/index.ts';
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
} from '../record.ts';
import { WINDOW_SIZES } from '../time/window.ts';

/** A new one is a file and a line in `core/metering/aggregations/`. */
export const AGGREGATION_TYPES = toEnumValues<AggregationType>(AGGREGATIONS);
export type { AggregationType };

export const RESET_USAGES = ['BILLING_PERIOD', 'NEVER'] as const;
export type ResetUsage = (typeof RESET_USAGES)[number];

export const windowSize = anyCase(WINDOW_SIZES);
export const aggregationType = anyCase(AGGREGATION_TYPES);

export const aggregationShape = z.object({
  type: aggregationType.meta({ description: 'How the values of events become one number.' }),
  field: orNull(keyText).meta({
    description:
      'The property that holds the value, by its name and not by a path; all but COUNT need it, or an expression.',
  }),
  expression: orNull(z.string()).meta({
    description: 'CEL over properties, in the place of the field; a missing property is 0.',
  }),
  multiplier: orNull(decimalText).meta({ description: 'Of SUM_WITH_MULTIPLIER alone: greater than 0.' }),
  bucket_size: orNull(windowSize).meta({
    description: 'Of SUM and MAX: aggregated window by window, and the total is the sum of the windows.',
  }),
  group_by: orNull(keyText).meta({
    description: 'Of MAX with a bucket_size: each value of this property has a maximum of its own, and they add up.',
  }),
});
export type Aggregation = z.output<typeof aggregationShape>;

export const filterShape = z.object({
  key: keyText.meta({ description: 'The name of a property, and not a path.' }),
  values: z
    .array(z.string())
    .meta({ description: 'Any of these passes; a number passes as the same number, however it is written.' }),
});
export type Filter = z.output<typeof filterShape>;

export const meterShape = z.object({
  id: z.string(),
  name: keyText.meta({ description: 'What people call it.' }),
  // Event names are trimmed of leading and trailing whitespace at ingestion and at query time.
  event_name: z.string().trim().max(255).meta({ description: 'The name of the events that it counts.' }),
  aggregation: aggregationShape.meta({ description: 'How the events become one number. It cannot be changed later.' }),
  filters: orDefault(z.array(filterShape), []).meta({
    description: 'What an event must have to be counted: all of them.',
  }),
  reset_usage: orDefault(anyCase(RESET_USAGES), 'BILLING_PERIOD').meta({
    description:
      'BILLING_PERIOD begins each period at 0; with NEVER what was counted since the start of the subscription stands.',
  }),
  ...baseFields,
});
export type Meter = z.output<typeof meterShape>;

/** What a client states about a meter; the rest of the record is ours. */
export const createMeterShape = meterShape.pick({
  name: true,
  event_name: true,
  aggregation: true,
  filters: true,
  reset_usage: true,
});
export type MeterInput = z.output<typeof createMeterShape>;

/** Throws what is wrong with an expression; compiling is the expression engine's business. */
export type CompileExpression = (text: string) => unknown;

export function checkMeter(meter: MeterInput, compileExpression?: CompileExpression): void {
  const { name, event_name } = meter;
  refuseBlank({ name, event_name });
  checkAggregation(meter.aggregation, compileExpression);
  checkFilters(meter.filters);
}

export function checkAggregation(aggregation: Aggregation, compileExpression?: CompileExpression): void {
  const { type, field, expression, group_by } = aggregation;
  refuseBlank({ 'aggregation.field': field, 'aggregation.expression': expression, 'aggregation.group_by': group_by });
  if (AGGREGATIONS[type].needs_value && !hasText(field) && !hasText(expression))
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

/** Nobody could tell which property, or which events, such a text names. */
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

/** `MAX and SUM` */
function listSupportingTypes(part: AggregationRules['takes'][number]): string {
  return AGGREGATION_TYPES.filter((type) => AGGREGATIONS[type].takes.includes(part))
    .sort()
    .join(' and ');
}

function hasText(text: string | null | undefined): text is string {
  return text !== null && text !== undefined && text.trim() !== '';
}
