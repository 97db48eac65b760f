/**
 * The groups of analytics: source, feature_id and properties.<name>, and nothing else (docs/rules/usage.md, "Analytics"). An analytics item
 * belongs to one subscription line item and so to one feature: feature_id never splits it. The other groups split its events.
 */
import { invalid } from '../../foundation/error.ts';
import { canonicalNumber } from '../canonical-number.ts';
import type { Property, PropertySource } from '../event-text.ts';

export type GroupBy = { readonly source: boolean; readonly properties: readonly string[] };

/** The values that all events of a group have in common. */
export type AnalyticsGroup = {
  readonly source: string | null;
  readonly properties: Readonly<Record<string, string>> | null;
};

export const NO_GROUP: AnalyticsGroup = { source: null, properties: null };

const PREFIX = 'properties.';

export function parseGroupBy(entries: readonly string[]): GroupBy {
  const properties: string[] = [];
  for (const [index, entry] of entries.entries()) {
    if (isProperty(entry)) properties.push(entry.slice(PREFIX.length));
    else if (!isGrouping(entry))
      throw invalid(`group_by[${index}]`, 'must be source, feature_id or properties.<name>', { group_by: entry });
  }
  return { source: entries.includes('source'), properties: [...new Set(properties)] };
}

export function isGrouping(entry: string): boolean {
  return entry === 'source' || entry === 'feature_id' || isProperty(entry);
}

function isProperty(entry: string): boolean {
  return entry.startsWith(PREFIX) && entry.length > PREFIX.length;
}

export function hasEventGroups(group_by: GroupBy): boolean {
  return group_by.source || group_by.properties.length > 0;
}

/** The values by which an event is grouped; `toAnalyticsGroup` reads them back. */
export function toGroupValues(group_by: GroupBy, event: { source: string; properties: PropertySource }): string[] {
  const values = group_by.properties.map((name) => toGroupText(event.properties.get(name)));
  return group_by.source ? [event.source, ...values] : values;
}

export function toAnalyticsGroup(group_by: GroupBy, values: readonly string[]): AnalyticsGroup {
  const named = group_by.source ? values.slice(1) : values;
  const properties = Object.fromEntries(group_by.properties.map((name, index) => [name, named[index] ?? '']));
  return {
    source: group_by.source ? (values[0] ?? '') : null,
    properties: group_by.properties.length > 0 ? properties : null,
  };
}

/** Equal values have equal texts, whatever the notation of a number; a missing value is ''. */
function toGroupText(property: Property | undefined): string {
  if (property === undefined || property.kind === 'null') return '';
  return property.kind === 'number' ? canonicalNumber(property.text) : property.text;
}
