/**
 * One filter of a meter: "accepted values" of a "first-level key of the event properties; nested keys are unsupported"
 * (specification, Filter), so "a.b" is the name of a key and never a path.
 *
 * A string equals a value when they are the same text. A number equals a value that is a number as JSON writes it and
 * the same number: 1e6 equals "1000000", and the string "1e6" does not. true and false equal "true" and "false".
 * null, objects, arrays and a missing key equal nothing.
 */
import { canonicalIfNumber, canonicalNumber } from './canonical-number.ts';
import type { Property } from './event-text.ts';
import type { MeterFilter } from './meter-definition.ts';

export type CompiledFilter = {
  readonly key: string;
  readonly values: ReadonlySet<string>;
  /** Those values that are numbers, canonical. */
  readonly numbers: ReadonlySet<string>;
};

export function compileFilter(filter: MeterFilter): CompiledFilter {
  const numbers = filter.values.map(canonicalIfNumber).filter((number) => number !== undefined);
  return { key: filter.key, values: new Set(filter.values), numbers: new Set(numbers) };
}

export function accepts(filter: CompiledFilter, property: Property | undefined): boolean {
  if (property === undefined) return false;
  if (property.kind === 'string' || property.kind === 'boolean') return filter.values.has(property.text);
  return property.kind === 'number' && filter.numbers.size > 0 && filter.numbers.has(canonicalNumber(property.text));
}
