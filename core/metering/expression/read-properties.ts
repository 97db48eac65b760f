/** Reads the properties of an event for an expression, as numbers or as text, and charges for long ones (work.ts). */
import { type Property, type PropertySource, properties as parseProperties } from '../event-text.ts';
import { EXACT_ZERO, type Exact } from '../exact.ts';
import { parseQuantity } from '../quantity.ts';
import { MAX_SCALE } from './arithmetic.ts';
import { spend, UnusableEvent } from './work.ts';

/** Keys from the properties of the event to a value: one for a property, more for a value inside objects. */
export type PropertyPath = readonly [string, ...string[]];

export const formatPath = (path: PropertyPath): string => path.join('.');

function findProperty(path: PropertyPath, properties: PropertySource): Property | undefined {
  let property = properties.get(path[0]);
  for (let at = 1; at < path.length && property !== undefined; at++) {
    if (property.kind !== 'object') throw notA('an object', path.slice(0, at), property);
    spend(property.text.length / PARSED_PER_UNIT);
    property = parseProperties(property.text).get(path[at]!);
  }
  return property;
}

/** Characters of an object that are parsed in a unit of work. */
const PARSED_PER_UNIT = 32;

export function readNumber(path: PropertyPath, properties: PropertySource): Exact {
  const property = path.length === 1 ? properties.get(path[0]) : findProperty(path, properties);
  if (property === undefined) return EXACT_ZERO;
  if (property.kind !== 'number' && property.kind !== 'string') throw notA('a number', path, property);
  if (property.text.length > SHORT_NUMBER) spend(property.text.length / CHARACTERS_PER_UNIT);
  // Operands are exact; only the result is rounded.
  const value = parseQuantity(property.text, MAX_SCALE);
  if (typeof value === 'string') throw new UnusableEvent(`property "${formatPath(path)}" ${value}`);
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
export function readText(path: PropertyPath, properties: PropertySource): string {
  const property = findProperty(path, properties);
  if (property === undefined) return '';
  if (property.kind !== 'string') throw notA('text', path, property);
  return property.text;
}

function notA(wanted: string, path: readonly string[], { kind }: Property): UnusableEvent {
  return new UnusableEvent(`property "${path.join('.')}" is ${kind === 'null' ? 'null' : `not ${wanted}`}`);
}
