/** At most `count` tasks run at once; the others wait in first-come order. */
export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  async within<Made>(work: () => Promise<Made>): Promise<Made> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    try {
      return await work();
    } finally {
      // The slot passes to the next waiter, and becomes free only if there is none.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
