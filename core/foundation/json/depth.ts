/** Maximum nesting of a value that becomes a record: a walk over it must not exhaust the stack, whatever its source. */
export const DEPTH_MAX = 64;

/** Checks level by level, so that no depth can exhaust the stack, here or in a later walk. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth++) {
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
    if (level.length === 0) return false;
  }
  return true;
}
