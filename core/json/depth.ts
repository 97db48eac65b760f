/** How deep what is made a record may be nested: a walk over it must not exhaust the stack, wherever it came from. */
export const DEPTH_MAX = 64;

/** Level by level, so that no depth can exhaust the stack here or below. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth++) {
    level = level.flatMap((item) => (typeof item === 'object' && item !== null ? Object.values(item) : []));
    if (level.length === 0) return false;
  }
  return true;
}
