/** A meter compiled once per version for many events: filters are sets, the expression is parsed, the aggregation is resolved. */
import { Decimal } from '../foundation/decimal.ts';
import { invalid } from '../foundation/error.ts';
import type { MeterAggregator } from './aggregations/aggregation.ts';
import { AGGREGATIONS } from './aggregations/index.ts';
import { type BaseSize, toBaseSize } from './bucket-size.ts';
import { CONTRIBUTE, type Contribution, type MeteredEvent, type Unusable, type ValueSource } from './contribution.ts';
import { compileExpression } from './expression.ts';
import { type CompiledFilter, compileFilter } from './filter.ts';
import type { BucketSize, MeterDefinition } from './meter-definition.ts';

export type CompiledMeter = ValueSource & {
  readonly id: string;
  /** Trimmed, like the event names that it is compared with (docs/rules/events.md, "What an event must have"). */
  readonly event_name: string;
  readonly definition: MeterDefinition;
  readonly filters: readonly CompiledFilter[];
  readonly aggregation: MeterAggregator;
  readonly multiplier: Decimal | undefined;
  readonly base_size: BaseSize;
  /** The windows of the meter's own aggregation; they may be coarser than the pre-aggregated rows. */
  readonly bucket_size: BucketSize | undefined;
};

export function compileMeter(definition: MeterDefinition): CompiledMeter {
  const { type, field, expression, multiplier, bucket_size, group_by } = definition.aggregation;
  const aggregation: MeterAggregator | undefined = AGGREGATIONS[type];
  if (aggregation === undefined) throw invalid('aggregation.type', 'is not an aggregation');
  const needsValue = aggregation.value_kind !== 'none';
  if (needsValue && !expression && !field) throw invalid('aggregation.field', `is required for ${type}`);
  if (aggregation.takes.includes('multiplier') && !multiplier)
    throw invalid('aggregation.multiplier', `is required for ${type}`);
  return {
    id: definition.id,
    event_name: definition.event_name.trim(),
    definition,
    filters: definition.filters.map(compileFilter),
    aggregation,
    field: field || undefined,
    expression: expression && needsValue ? compileExpression(expression) : undefined,
    group_by: group_by || undefined,
    multiplier: multiplier ? new Decimal(multiplier) : undefined,
    base_size: toBaseSize(bucket_size ?? undefined),
    bucket_size: bucket_size ?? undefined,
  };
}

const CACHED_METERS_MAX = 5_000;
const cachedMeters = new Map<string, CompiledMeter>();

/** Caches compiled meters. A partition reloads all meters when one of them changes, and parsing an expression takes a millisecond. */
export function compiledMeter(definition: MeterDefinition): CompiledMeter {
  const { id, event_name, filters, aggregation, reset_usage } = definition;
  const key = JSON.stringify([id, event_name, filters, aggregation, reset_usage]);
  let meter = cachedMeters.get(key);
  if (meter === undefined) {
    meter = compileMeter(definition);
    if (cachedMeters.size >= CACHED_METERS_MAX) cachedMeters.delete(cachedMeters.keys().next().value!);
  } else cachedMeters.delete(key);
  // A map iterates in insertion order, so the first entry is the least recently used.
  cachedMeters.set(key, meter);
  return meter;
}

export function measure(meter: CompiledMeter, event: MeteredEvent): Contribution | Unusable {
  return CONTRIBUTE[meter.aggregation.value_kind](meter, event);
}
