/** A meter made ready for many events: filters as sets, the expression parsed, the aggregation looked up. Made once per version. */
import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import type { MeterAggregator } from './aggregations/aggregation.ts';
import { AGGREGATIONS } from './aggregations/index.ts';
import { type BaseSize, toBaseSize } from './bucket-size.ts';
import type { Contribution, MeteredEvent, Unusable, ValueSource } from './contribution.ts';
import { compileExpression } from './expression.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import type { BucketSize, MeterDefinition } from './meter-definition.ts';

export type CompiledMeter = ValueSource & {
  readonly id: string;
  /** Trimmed, as the names of events are (docs/rules/events.md, "What an event must have"). */
  readonly event_name: string;
  readonly definition: MeterDefinition;
  readonly filters: readonly CompiledFilter[];
  readonly aggregation: MeterAggregator;
  readonly multiplier: Decimal | undefined;
  /** The size of the meter's pre-aggregated rows. */
  readonly base_size: BaseSize;
  /** The windows that the meter aggregates by itself; they may be coarser than the pre-aggregated rows. */
  readonly bucket_size: BucketSize | undefined;
};

export function compileMeter(definition: MeterDefinition): CompiledMeter {
  const { type, field, expression, multiplier, bucket_size, group_by } = definition.aggregation;
  const aggregation: MeterAggregator | undefined = AGGREGATIONS[type];
  if (aggregation === undefined) throw invalid('aggregation.type', 'is not an aggregation');
  if (aggregation.needs_value && !expression && !field) throw invalid('aggregation.field', `is required for ${type}`);
  if (aggregation.takes.includes('multiplier') && !multiplier)
    throw invalid('aggregation.multiplier', `is required for ${type}`);
  return {
    id: definition.id,
    event_name: definition.event_name.trim(),
    definition,
    filters: definition.filters.map(compileFilter),
    aggregation,
    field: field || undefined,
    expression: expression && aggregation.needs_value ? compileExpression(expression) : undefined,
    group_by: group_by || undefined,
    multiplier: multiplier ? new Decimal(multiplier) : undefined,
    base_size: toBaseSize(bucket_size ?? undefined),
    bucket_size: bucket_size ?? undefined,
  };
}

const CACHED_METERS_MAX = 5_000;
const cachedMeters = new Map<string, CompiledMeter>();

/**
 * The same for a definition that is compiled again and again: a partition takes up all meters whenever one of them changes,
 * and to parse an expression takes a millisecond.
 */
export function compiledMeter(definition: MeterDefinition): CompiledMeter {
  const { id, event_name, filters, aggregation, reset_usage } = definition;
  const key = JSON.stringify([id, event_name, filters, aggregation, reset_usage]);
  let meter = cachedMeters.get(key);
  if (meter === undefined) {
    meter = compileMeter(definition);
    if (cachedMeters.size >= CACHED_METERS_MAX) cachedMeters.delete(cachedMeters.keys().next().value!);
  } else cachedMeters.delete(key);
  // Behind all others: the first is the one that was not asked for the longest.
  cachedMeters.set(key, meter);
  return meter;
}

/** What the event contributes to a meter that it matches, or why it cannot be used there. */
export function measure(meter: CompiledMeter, event: MeteredEvent): Contribution | Unusable {
  return meter.aggregation.measure(meter, event);
}
