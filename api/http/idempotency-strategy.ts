/**
 * Makes a POST with an Idempotency-Key run once, even if the process that ran it was killed before its answer was stored
 * (docs/rules/errors.md, "Sending a request again"). Each operation declares its strategy; test/api/http/idempotency-strategy.test.ts lists
 * them.
 */
import { answerLost, type Effects } from './effects.ts';
import type { Context, Route } from './route.ts';

/** A route whose permission ends with `:read` writes nothing, so it needs no declared strategy. */
export function idempotencyStrategy({
  idempotency,
  access,
}: Pick<Route, 'idempotency' | 'access'>): Route['idempotency'] {
  return idempotency ?? (access.endsWith(':read') ? 'reads' : undefined);
}

/**
 * Whether the effects of the route are recorded. Without a strategy they are recorded too, so that a repeated request is refused instead of
 * running a second time.
 */
export function isNoted(route: Route): boolean {
  const strategy = idempotencyStrategy(route);
  return strategy === undefined || strategy === 'shown_once' || typeof strategy === 'object';
}

export function replayRequest(route: Route, done: Effects, { input, context }: { input: unknown; context: Context }) {
  if (typeof route.idempotency !== 'object') throw answerLost(done);
  return route.idempotency.replay(done, input as never, context);
}
