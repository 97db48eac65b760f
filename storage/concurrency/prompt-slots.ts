/**
 * Slots for concurrent work, some of which waits for other services. Such work frees its slot when it becomes slow, so that other work
 * can begin.
 */

type SlotLimits = {
  /** Maximum number of concurrent tasks that are not slow. */
  readonly at_once: number;
  /** Maximum number of all concurrent tasks, including slow ones. */
  readonly with_slow: number;
  readonly slow_after_ms: number;
};

export class PromptSlots {
  readonly #limits: SlotLimits;
  /** Instants at which running tasks become slow, by name; infinite for a task that retains its slot until its end. */
  readonly #slow_at = new Map<string, number>();

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get hasFree(): boolean {
    const { at_once, with_slow } = this.#limits;
    return this.#slow_at.size < with_slow && this.#listPrompt().length < at_once;
  }

  /** `can_hang`: the work waits for another service and frees its slot when it is slow. */
  take(name: string, { can_hang }: { can_hang: boolean }): void {
    this.#slow_at.set(name, can_hang ? performance.now() + this.#limits.slow_after_ms : Number.POSITIVE_INFINITY);
  }

  free(name: string): void {
    this.#slow_at.delete(name);
  }

  /** Milliseconds until a slot is free because a task becomes slow; 0 if one is free, null if only the end of a task frees one. */
  computeWait(): number | null {
    const { at_once, with_slow } = this.#limits;
    if (this.#slow_at.size >= with_slow) return null;
    const prompt = this.#listPrompt();
    if (prompt.length < at_once) return 0;
    const earliest = Math.min(...prompt);
    return earliest === Number.POSITIVE_INFINITY ? null : earliest - performance.now();
  }

  #listPrompt(): number[] {
    const now = performance.now();
    return [...this.#slow_at.values()].filter((slow_at) => slow_at > now);
  }
}
