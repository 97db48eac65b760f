/**
 * How a POST with an Idempotency-Key is done once although the process that did it first was killed before its answer was kept
 * (docs/rules/errors.md, "Sending a request again"). Each operation says which way it goes; test/api/http/idempotency-strategy.test.ts lists them.
 */
import { answerLost, type Effects } from './effects.ts';
import type { Context, Route } from './route.ts';

/** Who may only read writes nothing. */
export function idempotencyStrategy({
  idempotency,
  access,
}: Pick<Route, 'idempotency' | 'access'>): Route['idempotency'] {
  return idempotency ?? (access.endsWith(':read') ? 'reads' : undefined);
}

/** Of one that does not say how it goes, too: it is done no second time. */
export function isNoted(route: Route): boolean {
  const strategy = idempotencyStrategy(route);
  return strategy === undefined || strategy === 'shown_once' || typeof strategy === 'object';
}

export function replayRequest(route: Route, done: Effects, { input, context }: { input: unknown; context: Context }) {
  if (typeof route.idempotency !== 'object') throw answerLost(done);
  return route.idempotency.replay(done, input as never, context);
}
