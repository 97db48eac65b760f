/**
 * What one event contributes to one meter: a number from the field or the expression ("replaces field-based extraction
 * when set", specification, Aggregation), the identity of a value, or nothing but the event itself. "A missing or
 * non-numeric field where a number is needed makes the event unusable for that meter: it is not counted there, it is
 * shown with the reason, and it never becomes a silent 0" (decisions §9). A reason names the property, never its value.
 */

import { canonicalNumber } from './canonical-number.ts';
import type { Property, PropertySource } from './event-text.ts';
import { type Exact, exactText } from './exact.ts';
import type { CompiledExpression } from './expression.ts';
import { parseQuantity } from './quantity.ts';

export type MeteredEvent = {
  readonly event_id: string;
  readonly external_customer_id: string;
  readonly timestamp_us: number;
  readonly properties: PropertySource;
};

export type Contribution = {
  readonly unusable?: undefined;
  readonly event: MeteredEvent;
  /** The group of a meter with group_by; '' for an event without that property and for every other meter. */
  readonly group_key: string;
  /** The number that the aggregation takes, where it takes one. */
  readonly value: Exact | undefined;
  /** The canonical text of the value that COUNT_UNIQUE tells apart. */
  readonly identity: string | undefined;
};

export type Unusable = { readonly unusable: string };

/** Where a meter reads its value: compiled from its aggregation. */
export type ValueSource = {
  readonly field: string | undefined;
  readonly expression: CompiledExpression | undefined;
  readonly group_by: string | undefined;
};

/** For COUNT: the event itself. */
export function contributeEvent(source: ValueSource, event: MeteredEvent): Contribution | Unusable {
  return contribution(source, event, undefined, undefined);
}

/** For every aggregation that calculates. */
export function contributeNumber(source: ValueSource, event: MeteredEvent): Contribution | Unusable {
  if (source.expression !== undefined) {
    const result = source.expression.evaluate(event.properties);
    return result.unusable === undefined ? contribution(source, event, result.value, undefined) : result;
  }
  const field = source.field as string;
  const property = event.properties.get(field);
  if (property === undefined || (property.kind !== 'number' && property.kind !== 'string')) {
    return { unusable: `property "${field}" ${property === undefined ? 'is missing' : kindText(property)}` };
  }
  const value = parseQuantity(property.text);
  if (typeof value === 'string') return { unusable: `property "${field}" ${value}` };
  return contribution(source, event, value, undefined);
}

/** For COUNT_UNIQUE: the value as text, numbers canonical, so that 1, 1.0 and "1" are one value. */
export function contributeIdentity(source: ValueSource, event: MeteredEvent): Contribution | Unusable {
  if (source.expression !== undefined) {
    const result = source.expression.evaluate(event.properties);
    if (result.unusable !== undefined) return result;
    return contribution(source, event, undefined, canonicalNumber(exactText(result.value)));
  }
  const field = source.field as string;
  const property = event.properties.get(field);
  const identity = property === undefined ? undefined : scalarText(property);
  if (identity === undefined) {
    return { unusable: `property "${field}" ${property === undefined ? 'is missing' : kindText(property)}` };
  }
  return contribution(source, event, undefined, identity);
}

function contribution(
  source: ValueSource,
  event: MeteredEvent,
  value: Exact | undefined,
  identity: string | undefined,
): Contribution | Unusable {
  const group_key = source.group_by === undefined ? '' : groupOf(source.group_by, event.properties);
  if (group_key === undefined)
    return { unusable: `property "${source.group_by}" is no group: it is not a scalar value` };
  return { event, group_key, value, identity };
}

function groupOf(key: string, properties: PropertySource): string | undefined {
  const property = properties.get(key);
  return property === undefined || property.kind === 'null' ? '' : scalarText(property);
}

/** One text per scalar value; nothing for null, objects and arrays. */
function scalarText(property: Property): string | undefined {
  if (property.kind === 'number') return canonicalNumber(property.text);
  return property.kind === 'string' || property.kind === 'boolean' ? property.text : undefined;
}

function kindText(property: Property): string {
  if (property.kind === 'null') return 'is null';
  return property.kind === 'boolean' ? 'is not a number' : `is ${property.kind === 'array' ? 'an array' : 'an object'}`;
}
