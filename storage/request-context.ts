/**
 * On whose behalf the process works at this moment, wherever the call stands: a request sets it once (api/http/mount.ts), a job
 * that works for one tenant too. The wall before Postgres holds every statement against its scope (postgres/wall/wall.ts), and
 * the audit log writes down who it is (models/tell-changes.ts). Where nobody is set, the process works for all tenants: the
 * pipeline, the clock, the look-up of a key.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Scope } from '../core/scope.ts';

export type RequestContext = {
  readonly scope: Scope;
  readonly user_id: string;
  /** The API key, where it came with one. */
  readonly secret_id: string | null;
  readonly request_id: string | null;
  /** Of the environment, where it has one, and where it stood when the request came. */
  readonly clock?: { readonly id: string; readonly target_time?: string | null; readonly now: Date } | null;
  /** Of a request with an Idempotency-Key whose effects are noted (models/request-effects.ts). */
  readonly key?: RequestKey;
};

/** The key as its row has it, whose scope is that of the request wherever it writes. */
export type RequestKey = Scope & {
  readonly id: string;
  readonly holder: string;
  /** Something was noted, whether or not its transaction has committed. */
  has_effects: boolean;
  /** Something was committed by who held the key before: what is left of it is done, and no more is noted. */
  readonly goes_on: boolean;
  /** What is kept of what a transaction has made, where nobody can read it again. */
  shows?: (made: never) => unknown;
};

const requestContexts = new AsyncLocalStorage<RequestContext>();

export function runAs<Result>(context: RequestContext, work: () => Result): Result {
  return requestContexts.run(context, work);
}

export function currentRequestContext(): RequestContext | undefined {
  return requestContexts.getStore();
}

/** What the caller does under the key of its request. */
export function runUnderKey<Result>(key: RequestKey, work: () => Result): Result {
  const context = requestContexts.getStore();
  return context ? requestContexts.run({ ...context, key }, work) : work();
}

/** What serves several callers at one time is begun by one of them and is no work of his. */
export function runAsSystem<Result>(work: () => Result): Result {
  return requestContexts.exit(work);
}

/** The caller in another environment of its tenant, for what it may do there: whoever calls this has checked that. */
export function runInEnvironment<Result>(environment_id: string, work: () => Result): Result {
  const context = requestContexts.getStore();
  if (!context) return work();
  return requestContexts.run({ ...context, scope: { ...context.scope, environment_id } }, work);
}
