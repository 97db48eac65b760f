/**
 * One filter of a meter: the accepted values of a first-level key of the properties. "a.b" is the name of a key and never
 * a path (docs/rules/metering.md, "Which events count").
 *
 * A string equals a value if they are the same text. A number equals a value that is a JSON number with the same numeric
 * value: 1e6 equals "1000000", and the string "1e6" does not. true and false equal "true" and "false". null, objects,
 * arrays and a missing key equal nothing (docs/rules/metering.md, "When a value matches a filter").
 */
import { canonicalIfNumber, canonicalNumber } from './canonical-number.ts';
import type { Property } from './event-text.ts';
import type { MeterFilterDefinition } from './meter-definition.ts';
import { NUMBER_TEXT_MAX } from './quantity.ts';

export type CompiledFilter = {
  readonly key: string;
  readonly values: ReadonlySet<string>;
  /** The values that are numbers, in canonical form. */
  readonly numbers: ReadonlySet<string>;
  /** Length of the longest value; a longer text cannot match and is not compared. */
  readonly longest: number;
  /** Total length of all values. */
  readonly characters: number;
};

export function compileFilter(filter: MeterFilterDefinition): CompiledFilter {
  const numbers = filter.values.map(canonicalIfNumber).filter((number) => number !== undefined);
  const longest = filter.values.reduce((length, value) => Math.max(length, value.length), 0);
  const characters = filter.values.reduce((sum, value) => sum + value.length, 0);
  return { key: filter.key, values: new Set(filter.values), numbers: new Set(numbers), longest, characters };
}

export function accepts(filter: CompiledFilter, property: Property | undefined): boolean {
  if (property === undefined) return false;
  const { kind, text } = property;
  if (kind === 'string' || kind === 'boolean') return text.length <= filter.longest && filter.values.has(text);
  if (kind !== 'number' || filter.numbers.size === 0 || text.length > NUMBER_TEXT_MAX) return false;
  return filter.numbers.has(canonicalNumber(text));
}
