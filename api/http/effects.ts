/**
 * Effects that an earlier attempt of a request with an Idempotency-Key committed without storing its answer, for example because its
 * process died. The replay handler reads them (idempotency-strategy.ts).
 */
import { alreadyExists } from '../../core/foundation/error.ts';
import type { RequestEffect, RequestEffects } from '../../storage/models/foundation/request-effects.ts';

/** The records that the earlier attempt created, changed or removed. */
export class Effects {
  readonly all: readonly RequestEffect[];
  readonly #answer: unknown;
  constructor({ records, answer }: RequestEffects) {
    this.all = records;
    this.#answer = answer;
  }

  /** Answer that was stored with the effects (recordRequestAnswer). */
  get answer(): object {
    if (typeof this.#answer === 'object' && this.#answer !== null) return this.#answer;
    throw answerLost(this);
  }

  /** Id of the first affected record of this type, created or changed. */
  touched(entity_type: string): string {
    const found = this.all.find(([type]) => type === entity_type);
    if (!found) throw answerLost(this);
    return found[1];
  }

  /** Ids of the created records, in order of creation. */
  madeAll(entity_type: string): string[] {
    return this.all.flatMap(([type, id, deed]) => (type === entity_type && deed === 'made' ? id : []));
  }

  /** Id of the first created record of this type. Throws if the earlier attempt created none. */
  made(entity_type: string): string {
    const [first] = this.madeAll(entity_type);
    if (first === undefined) throw answerLost(this);
    return first;
  }
}

/** Builds the error of a lost answer. Its details list the ids of the affected records, by which the result can be read. */
export function answerLost({ all }: Effects) {
  const done = all.map(([entity_type, id, deed]) => ({ entity_type, id, deed }));
  return alreadyExists('the request with this Idempotency-Key was done already, and its answer was lost', { done });
}
