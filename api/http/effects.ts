/** What a request with an Idempotency-Key had committed when its process died, for whoever goes on from there (once.ts). */
import { alreadyExists } from '../../core/error.ts';
import type { RequestEffect, RequestEffects } from '../../storage/models/request-effects.ts';

/** What was committed by who held the key before. */
export class Effects {
  readonly all: readonly RequestEffect[];
  readonly #answer: unknown;
  constructor({ records, answer }: RequestEffects) {
    this.all = records;
    this.#answer = answer;
  }

  /** What was kept of the answer (keptAs). */
  get answer(): object {
    if (typeof this.#answer === 'object' && this.#answer !== null) return this.#answer;
    throw answerLost(this);
  }

  /** The one that was made or changed. */
  touched(entity_type: string): string {
    const found = this.all.find(([type]) => type === entity_type);
    if (!found) throw answerLost(this);
    return found[1];
  }

  /** The ids of those that were made, in their order. */
  madeAll(entity_type: string): string[] {
    return this.all.flatMap(([type, id, deed]) => (type === entity_type && deed === 'made' ? id : []));
  }

  /** The one that was made. Where there is none, it was the process's end that kept it from being made. */
  made(entity_type: string): string {
    const [first] = this.madeAll(entity_type);
    if (first === undefined) throw answerLost(this);
    return first;
  }
}

/** What it did can be read by the ids of the records. */
export function answerLost({ all }: Effects) {
  const done = all.map(([entity_type, id, deed]) => ({ entity_type, id, deed }));
  return alreadyExists('the request with this Idempotency-Key was done already, and its answer was lost', { done });
}
