/**
 * How a POST with an Idempotency-Key is done once although the process that did it first was killed before its answer was kept
 * (docs/rules/errors.md, "Sending a request again"). Each operation says which way it goes; test/api/http/once.test.ts lists them.
 */
import { alreadyExists } from '../../core/error.ts';
import type { Done, Effect } from '../../storage/models/request-effects.ts';
import type { Context, Route } from './route.ts';

/**
 * `reads`: it writes nothing. `same`: done twice it has done the same as once. `inner_key`: what it does has a key of its own, which is
 * that of the body or follows from the header (innerKey). Else what it commits is noted in the same transaction, and `again` does what
 * is left and answers what the first answered, as it can be read now. `shown_once`: it is noted, and nobody can read the answer again.
 */
export type Once<Input> =
  | 'reads'
  | 'same'
  | 'inner_key'
  | 'shown_once'
  | { again(done: Effects, input: Input, context: Context): Promise<unknown> };

/** What was committed by who held the key before. */
export class Effects {
  readonly all: readonly Effect[];
  readonly #answer: unknown;
  constructor({ records, answer }: Done) {
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

/** Who may only read writes nothing. */
export function wayOf({ once, access }: Pick<Route, 'once' | 'access'>): Route['once'] {
  return once ?? (access.endsWith(':read') ? 'reads' : undefined);
}

/** Of one that does not say how it goes, too: it is done no second time. */
export function isNoted(route: Route): boolean {
  const way = wayOf(route);
  return way === undefined || way === 'shown_once' || typeof way === 'object';
}

export function doAgain(route: Route, done: Effects, { input, context }: { input: unknown; context: Context }) {
  if (typeof route.once !== 'object') throw answerLost(done);
  return route.once.again(done, input as never, context);
}

/** What it did can be read by the ids of the records. */
export function answerLost({ all }: Effects) {
  const done = all.map(([entity_type, id, deed]) => ({ entity_type, id, deed }));
  return alreadyExists('the request with this Idempotency-Key was done already, and its answer was lost', { done });
}
