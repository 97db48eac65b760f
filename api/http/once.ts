/**
 * How a POST with an Idempotency-Key is done once although the process that did it first was killed before its answer was kept
 * (docs/rules/errors.md, "Sending a request again"). Each operation says which way it goes; test/api/http/once.test.ts lists them.
 */
import { answerLost, type Effects } from './effects.ts';
import type { Context, Route } from './route.ts';

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
