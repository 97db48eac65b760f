/**
 * A server that hangs answers nothing and breaks nothing off, and how long a statement may take says little about it. So after
 * some seconds, and again and again, it is asked whether it lives. If it does not say so twice in a row, what waits for it
 * is broken off.
 */
const PROBE_INTERVAL_MS = 5_000;
/** How long a look may take: whoever looks keeps to it. */
export const PROBE_TIMEOUT_MS = 3_000;
const PROBES_MAX = 2;

/** What a hung server does not answer is broken off within this time. */
export const SILENT_WITHIN_MS = PROBES_MAX * (PROBE_INTERVAL_MS + PROBE_TIMEOUT_MS);

/**
 * What was found of a server. Once it was silent, whoever asks next does not wait as long again: it is looked at once, and a request
 * that asks one question after the other, or tries again, is answered about when the first of them would have been.
 */
export type ResponsivenessState = { is_silent: boolean };

/** Answers how to end the watch, when the statement was answered. */
export function watchUntilAnswered(
  isAlive: () => Promise<boolean>,
  breakOff: () => void,
  state: ResponsivenessState = { is_silent: false },
): () => void {
  const watch = new Watch(isAlive, breakOff, state);
  watch.start();
  return () => watch.end();
}

/** Of one statement: each has one, so nothing is made for it that it does not need. */
class Watch {
  readonly #isAlive: () => Promise<boolean>;
  readonly #breakOff: () => void;
  readonly #state: ResponsivenessState;
  #isOver = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(lives: () => Promise<boolean>, breakOff: () => void, found: ResponsivenessState) {
    this.#isAlive = lives;
    this.#breakOff = breakOff;
    this.#state = found;
  }

  start(): void {
    if (this.#state.is_silent) void this.#probe(PROBES_MAX - 1);
    else this.#probeLater(0);
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  #probeLater(failures: number): void {
    this.#timer = setTimeout(() => void this.#probe(failures), PROBE_INTERVAL_MS);
  }

  async #probe(failures: number): Promise<void> {
    const is_alive = await this.#isAlive();
    if (is_alive) this.#state.is_silent = false;
    if (this.#isOver) return;
    if (is_alive) return this.#probeLater(0);
    if (failures + 1 < PROBES_MAX) return this.#probeLater(failures + 1);
    this.#state.is_silent = true;
    this.#breakOff();
  }
}
