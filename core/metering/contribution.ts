/**
 * The contribution of one event to one meter: a number from the field or the expression (docs/rules/metering.md, "The
 * value of an event"), the identity of a value, or the event alone. An event without the required number is unusable for
 * that meter: it is not counted, it is shown with the reason, and it is never a silent 0 (docs/rules/metering.md,
 * "Unusable events"). A reason names the property, never its value.
 */

import type { Microseconds } from '../foundation/time/instant.ts';
import { canonicalNumber } from './canonical-number.ts';
import type { Property, PropertySource } from './event-text.ts';
import { type Exact, exactText } from './exact.ts';
import type { CompiledExpression } from './expression.ts';
import { parseQuantity } from './quantity.ts';

/**
 * Maximum number of characters of an identity or a group, equal to that of event ids and names. Each row stores its distinct values and its
 * group.
 */
const IDENTITY_MAX = 1_024;

export type MeteredEvent = {
  readonly event_id: string;
  readonly external_customer_id: string;
  readonly timestamp_us: Microseconds;
  readonly properties: PropertySource;
};

export type Contribution = {
  readonly unusable?: undefined;
  readonly event: MeteredEvent;
  /** Group of a meter with group_by; '' for an event without that property and for a meter without group_by. */
  readonly group_key: string;
  /** Number to aggregate, of the value kind `number`. */
  readonly value: Exact | undefined;
  /** Canonical text that is equal for equal values, of the value kind `identity`. */
  readonly identity: string | undefined;
};

/** An aggregation uses the occurrence of an event alone, its number, or the identity of its value. */
export type ValueKind = 'none' | 'number' | 'identity';

export type Unusable = { readonly unusable: string };

/** Source of a meter's value, compiled from its aggregation. */
export type ValueSource = {
  readonly field: string | undefined;
  readonly expression: CompiledExpression | undefined;
  readonly group_by: string | undefined;
};

export const CONTRIBUTE: Readonly<
  Record<ValueKind, (source: ValueSource, event: MeteredEvent) => Contribution | Unusable>
> = { none: contributeEvent, number: contributeNumber, identity: contributeIdentity };

function contributeEvent(source: ValueSource, event: MeteredEvent): Contribution | Unusable {
  return contribution(source, event, undefined, undefined);
}

function contributeNumber(source: ValueSource, event: MeteredEvent): Contribution | Unusable {
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

/** Returns the identity of the event's value. Numbers are canonical, so 1, 1.0 and "1" are one value. */
function contributeIdentity(source: ValueSource, event: MeteredEvent): Contribution | Unusable {
  if (source.expression !== undefined) {
    const result = source.expression.evaluate(event.properties);
    if (result.unusable !== undefined) return result;
    return contribution(source, event, undefined, canonicalNumber(exactText(result.value)));
  }
  const field = source.field as string;
  const property = event.properties.get(field);
  const identity = property === undefined ? undefined : scalarText(property);
  if (identity === undefined) {
    return { unusable: `property "${field}" ${property === undefined ? 'is missing' : notAScalar(property)}` };
  }
  return contribution(source, event, undefined, identity);
}

function contribution(
  source: ValueSource,
  event: MeteredEvent,
  value: Exact | undefined,
  identity: string | undefined,
): Contribution | Unusable {
  const group_key = source.group_by === undefined ? '' : toGroupKey(source.group_by, event.properties);
  if (group_key === undefined) return { unusable: notAGroup(source.group_by!, event.properties) };
  return { event, group_key, value, identity };
}

function toGroupKey(key: string, properties: PropertySource): string | undefined {
  const property = properties.get(key);
  return property === undefined || property.kind === 'null' ? '' : scalarText(property);
}

/** Returns one text per scalar value; undefined for null, objects, arrays and texts longer than IDENTITY_MAX. */
function scalarText(property: Property): string | undefined {
  if (property.text.length > IDENTITY_MAX) return undefined;
  if (property.kind === 'number') return canonicalNumber(property.text);
  return property.kind === 'string' || property.kind === 'boolean' ? property.text : undefined;
}

function notAGroup(key: string, properties: PropertySource): string {
  const property = properties.get(key)!;
  const why = isScalar(property) ? notAScalar(property) : 'is not a scalar value';
  return `property "${key}" is no group: it ${why}`;
}

function isScalar({ kind }: Property): boolean {
  return kind === 'string' || kind === 'number';
}

function notAScalar(property: Property): string {
  return isScalar(property) ? `is longer than ${IDENTITY_MAX} characters` : kindText(property);
}

function kindText(property: Property): string {
  if (property.kind === 'null') return 'is null';
  return property.kind === 'boolean' ? 'is not a number' : `is ${property.kind === 'array' ? 'an array' : 'an object'}`;
}
