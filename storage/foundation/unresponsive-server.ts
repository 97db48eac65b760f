/**
 * Time between probes of a server. A hung server neither answers nor disconnects, and the duration of a statement says little about it, so
 * the server is probed every few seconds. After two failed probes in a row, the statements that wait for it are aborted.
 */
const PROBE_INTERVAL_MS = 5_000;
/** Timeout of one probe; the callers enforce it. */
export const PROBE_TIMEOUT_MS = 3_000;
const PROBES_MAX = 2;

/** Time within which statements to a hung server are aborted. */
export const SILENT_WITHIN_MS = PROBES_MAX * (PROBE_INTERVAL_MS + PROBE_TIMEOUT_MS);

/**
 * Latest result for a server. After it was silent, the next statement is probed at once: a request that sends several statements,
 * or retries, fails at about the time at which its first statement would have failed.
 */
export type ResponsivenessState = { is_silent: boolean };

/** Returns a function that ends the watch after the statement was answered. */
export function watchUntilAnswered(
  isAlive: () => Promise<boolean>,
  breakOff: () => void,
  state: ResponsivenessState = { is_silent: false },
): () => void {
  const watch = new Watch(isAlive, breakOff, state);
  watch.start();
  return () => watch.end();
}

/** An instance is created for each statement, so it allocates as little as possible. */
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
