/** So many may be at work at once; the others wait, and come in the order in which they asked. */
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
      // The place goes to the next in line; only when nobody waits is it free.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
