/** Refuses texts and lists that no record can store, at any depth of a value. */
import { invalid } from './error.ts';
import { fieldPath } from './shaped.ts';

/** Limit of list entries; each id of a list costs a lookup. */
export const LIST_MAX = 10_000;

const TEXT_MAX = 65_536;

/** Throws for texts that cannot be stored unchanged and for excessive sizes; the error names the field. */
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
    // A shape would drop the key silently, and a filter with this name would filter nothing.
    if (key === '__proto__') throw invalid(fieldPath([...path, key]), 'is no name that can be used');
    checkTexts(inner, [...path, Array.isArray(value) ? Number(key) : key]);
  }
}

const UNUSABLE = /[\0\p{Surrogate}]/u;
