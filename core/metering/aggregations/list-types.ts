/** Lists aggregation types by a property, and formats their names for descriptions. */
import type { MeterAggregator } from './aggregation.ts';
import { AGGREGATIONS, type AggregationType } from './index.ts';

/** Lists the types for which `accepts` returns true, in the order of the registry. */
export function listAggregationTypes(accepts: (aggregator: MeterAggregator) => boolean): AggregationType[] {
  const types = Object.keys(AGGREGATIONS) as AggregationType[];
  return types.filter((type) => accepts(AGGREGATIONS[type]));
}

/** Formats the names of the types that have this setting, as in `SUM and MAX`. */
export function formatTypesTaking(setting: MeterAggregator['takes'][number]): string {
  return listAggregationTypes(({ takes }) => takes.includes(setting)).join(' and ');
}

export function formatTypesWithoutValue(): string {
  return listAggregationTypes(({ value_kind }) => value_kind === 'none').join(' and ');
}

/**
 * Whether the type adds up the units of events. Only then does each unit have a position in the order of events, and with it its own price.
 */
export function isAdditive({ type }: { readonly type: string }): boolean {
  return AGGREGATIONS[type as AggregationType].chain_rule === 'additive';
}
