/** Groups values by key, in order of appearance. Node 20 has no Map.groupBy. */
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
