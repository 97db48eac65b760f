/** Reads the properties of an event for an expression, as numbers or as text, and charges for long ones (work.ts). */
import type { Property, PropertySource } from '../event-text.ts';
import { EXACT_ZERO, type Exact } from '../exact.ts';
import { parseQuantity } from '../quantity.ts';
import { MAX_SCALE } from './arithmetic.ts';
import { spend, UnusableEvent } from './work.ts';

export function readNumber(name: string, properties: PropertySource): Exact {
  const property = properties.get(name);
  if (property === undefined) return EXACT_ZERO;
  if (property.kind !== 'number' && property.kind !== 'string') throw notA('number', name, property);
  if (property.text.length > SHORT_NUMBER) spend(property.text.length / CHARACTERS_PER_UNIT);
  // Operands are exact; only the result is rounded.
  const value = parseQuantity(property.text, MAX_SCALE);
  if (typeof value === 'string') throw new UnusableEvent(`property "${name}" ${value}`);
  return value;
}

/** Maximum characters of a number whose text is read in one pass. */
const SHORT_NUMBER = 17;
const CHARACTERS_PER_UNIT = 16;

/** Compares two texts. Only texts of equal length cost work, because texts of different lengths differ without a comparison. */
export function isSame(a: string | boolean, b: string | boolean): boolean {
  if (typeof a === 'string' && typeof b === 'string' && a.length === b.length && a.length > COMPARED_AT_ONCE)
    spend(a.length / COMPARED_PER_UNIT);
  return a === b;
}

const COMPARED_AT_ONCE = 256;
const COMPARED_PER_UNIT = 512;

/** Reads a property as text. A missing text is empty, just as a missing number is 0. */
export function readText(name: string, properties: PropertySource): string {
  const property = properties.get(name);
  if (property === undefined) return '';
  if (property.kind !== 'string') throw notA('text', name, property);
  return property.text;
}

function notA(wanted: 'number' | 'text', name: string, property: Property): UnusableEvent {
  if (property.kind === 'null') return new UnusableEvent(`property "${name}" is null`);
  return new UnusableEvent(`property "${name}" is not ${wanted === 'number' ? 'a number' : 'text'}`);
}
