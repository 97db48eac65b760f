/**
 * The filters of a question follow the rules of a meter's own: one of several accepted values, and all filters must hold
 * (docs/rules/metering.md, "When a value matches a filter").
 */
import type { PropertySource } from '../metering/event-text.ts';
import { accepts, compileFilter } from '../metering/filter.ts';

/** Property name → accepted values. */
export type PropertyFilters = Readonly<Record<string, readonly string[]>>;

export function compilePropertyFilters(accepted: PropertyFilters): (properties: PropertySource) => boolean {
  const filters = Object.entries(accepted).map(([key, values]) => compileFilter({ key, values }));
  return (properties) => filters.every((filter) => accepts(filter, properties.get(filter.key)));
}
