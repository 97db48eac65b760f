/** Repeatable random numbers: a test prints its seed. SEED=7 runs only that seed, SEEDS=1-10 or SEEDS=3,5,8 several. */

/** Seeds 1 to `count`, or those in SEED or SEEDS, or in the variable that `own` names. */
export function seedsToRun(count: number, own?: 'KILL_SEEDS'): number[] {
  const asked = (own && process.env[own]) || process.env.SEEDS || process.env.SEED || `1-${count}`;
  return asked.split(',').flatMap((part) => {
    const [, first, last = first] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part.trim()) ?? [];
    if (first === undefined) throw new Error(`SEEDS must be like 7 or 1-10 or 3,5,8, not ${asked}`);
    return Array.from({ length: Number(last) - Number(first) + 1 }, (_none, index) => Number(first) + index);
  });
}

export type Chance = {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number from `from` to `to`, both included. */
  whole(from: number, to: number): number;
  pick<Item>(items: readonly Item[]): Item;
  shuffled<Item>(items: readonly Item[]): Item[];
};

/** The Mulberry32 generator. */
export function createChance(seed: number): Chance {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (from: number, to: number) => from + Math.floor(next() * (to - from + 1));
  return {
    next,
    whole,
    pick: (items) => items[whole(0, items.length - 1)]!,
    shuffled: (items) => {
      const mixed = [...items];
      for (let at = mixed.length - 1; at > 0; at--) {
        const other = whole(0, at);
        [mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!];
      }
      return mixed;
    },
  };
}
