/** The values by their keys, in the order in which they come: what Map.groupBy does, which Node 20 has not. */
export function groupBy<Value, Key>(
  values: Iterable<Value>,
  toKey: (value: Value) => Key,
): Map<Key, [Value, ...Value[]]> {
  const groups = new Map<Key, [Value, ...Value[]]>();
  for (const value of values) {
    const key = toKey(value);
    const known = groups.get(key);
    if (known) known.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}
