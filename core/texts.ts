/** What no record can hold, wherever in a value it stands. */
import { invalid } from './error.ts';
import { fieldPath } from './shaped.ts';

/** As many as anybody can mean: of a list of ids each is looked for. */
export const LIST_MAX = 10_000;

const TEXT_MAX = 65_536;

/** What cannot be stored as it is, would be lost on the way, or is of no sensible size, is refused where it stands. */
export function checkTexts(value: unknown, path: (string | number)[] = []): void {
  if (typeof value === 'string' && UNUSABLE.test(value)) {
    throw invalid(fieldPath(path), 'holds a NUL or half a character, which cannot be stored');
  }
  if (typeof value === 'string' && value.length > TEXT_MAX)
    throw invalid(fieldPath(path), `must not be longer than ${TEXT_MAX} characters`);
  if (Array.isArray(value) && value.length > LIST_MAX)
    throw invalid(fieldPath(path), `must not have more than ${LIST_MAX} entries, and has ${value.length}`);
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    checkTexts(key, path);
    // A shape would leave it out without a word, and a filter of that name would filter nothing.
    if (key === '__proto__') throw invalid(fieldPath([...path, key]), 'is no name that can be used');
    checkTexts(inner, [...path, Array.isArray(value) ? Number(key) : key]);
  }
}

const UNUSABLE = /[\0\p{Surrogate}]/u;
