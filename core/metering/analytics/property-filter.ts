/**
 * The filters of a query follow the rules for the filters of a meter: one of several accepted values, and all filters
 * must match (docs/rules/metering.md, "When a value matches a filter").
 */
import type { PropertySource } from '../event-text.ts';
import { accepts, compileFilter } from '../filter.ts';

/** Property name → accepted values. */
export type PropertyFilters = Readonly<Record<string, readonly string[]>>;

export function compilePropertyFilters(accepted: PropertyFilters): (properties: PropertySource) => boolean {
  const filters = Object.entries(accepted).map(([key, values]) => compileFilter({ key, values }));
  return (properties) => filters.every((filter) => accepts(filter, properties.get(filter.key)));
}
