/**
 * Derives a lookup key from a name (docs/rules/records.md, "Lookup keys"): "API calls (v2)" → "api-calls-v2". A name without letters and
 * digits has none.
 */
const LENGTH_MAX = 255;
const CANDIDATES = 50;

export function toLookupKey(name: string): string | null {
  const key = name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '');
  return key === '' ? null : cut(key, LENGTH_MAX);
}

/** Candidates in case other records have the key already: the key, then the key with suffix 2, 3, 4 … */
export function toLookupKeys(name: string): string[] {
  const key = toLookupKey(name);
  if (key === null) return [];
  const stem = cut(key, LENGTH_MAX - '-99'.length);
  return [key, ...Array.from({ length: CANDIDATES - 1 }, (_, index) => `${stem}-${index + 2}`)];
}

/** Shortens a key without splitting a surrogate pair. */
function cut(key: string, length: number): string {
  return key.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}
