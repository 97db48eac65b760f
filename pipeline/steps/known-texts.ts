/**
 * Shares one copy of each frequent text, such as names, customers and sources. A substring would
 * retain the text of its whole batch; a copy does not, and its hash in a map is computed once.
 */
export class KnownTexts {
  readonly #texts = new Map<string, string>();

  known(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size === TEXTS_MAX) this.#texts.clear();
    const copy = detached(text);
    this.#texts.set(copy, copy);
    return copy;
  }
}

const TEXTS_MAX = 50_000;

function detached(text: string): string {
  return ` ${text}`.slice(1);
}
