/** Slots for concurrent work that waits for other services. Slow work frees its slot, so work that hangs keeps no other from beginning. */

type SlotLimits = {
  /** Work at once, except slow work. */
  readonly at_once: number;
  /** Work at once with the slow. */
  readonly with_slow: number;
  readonly slow_after_ms: number;
};

export class PromptSlots {
  readonly #limits: SlotLimits;
  /** Instants at which the work has begun, by its name, the oldest first. */
  readonly #begun = new Map<string, number>();

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get hasFree(): boolean {
    const { at_once, with_slow } = this.#limits;
    return this.#begun.size < with_slow && this.#listPrompt().length < at_once;
  }

  take(name: string): void {
    this.#begun.set(name, performance.now());
  }

  free(name: string): void {
    this.#begun.delete(name);
  }

  /** Time until a slot is free although no work ends; null if that does not happen. */
  computeWait(): number | null {
    const { with_slow, slow_after_ms } = this.#limits;
    if (this.#begun.size >= with_slow) return null;
    const [oldest] = this.#listPrompt();
    return oldest === undefined ? 0 : oldest + slow_after_ms - performance.now();
  }

  #listPrompt(): number[] {
    const slow_before = performance.now() - this.#limits.slow_after_ms;
    return [...this.#begun.values()].filter((begun) => begun > slow_before);
  }
}
