/**
 * Stores values that thousands of cached answers share, such as a price or a feature, once in memory. Cached values must not be modified.
 */

const VALUES_MAX = 20_000;
const values = new Map<string, unknown>();
const ids = new Map<string, string>();

export function internValue<Value>(value: Value): Value {
  const text = JSON.stringify(value);
  if (values.has(text)) return values.get(text) as Value;
  if (values.size >= VALUES_MAX) values.clear();
  values.set(text, value);
  return value;
}

/** Returns the shared copy of an equal id. */
export function internId(id: string): string {
  const known = ids.get(id);
  if (known !== undefined) return known;
  if (ids.size >= VALUES_MAX) ids.clear();
  ids.set(id, id);
  return id;
}
