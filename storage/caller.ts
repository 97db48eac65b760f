/**
 * On whose behalf the process works at this moment, wherever the call stands: a request sets it once (api/http/mount.ts), a job
 * that works for one tenant too. The wall before Postgres holds every statement against its scope (postgres/wall/wall.ts), and
 * the audit log writes down who it is (models/tell-changes.ts). Where nobody is set, the process works for all tenants: the
 * pipeline, the clock, the look-up of a key.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Scope } from '../core/scope.ts';

export type Caller = {
  readonly scope: Scope;
  readonly user_id: string;
  /** The API key, where it came with one. */
  readonly secret_id: string | null;
  readonly request_id: string | null;
  /** Of the environment, where it has one, and where it stood when the request came. */
  readonly clock?: { readonly id: string; readonly target_time?: string | null; readonly now: Date } | null;
};

const callers = new AsyncLocalStorage<Caller>();

export function onBehalfOf<Result>(caller: Caller, work: () => Result): Result {
  return callers.run(caller, work);
}

export function currentCaller(): Caller | undefined {
  return callers.getStore();
}

/** What serves several callers at one time is begun by one of them and is no work of his. */
export function forEverybody<Result>(work: () => Result): Result {
  return callers.exit(work);
}

/** The caller in another environment of its tenant, for what it may do there: whoever calls this has checked that. */
export function inEnvironment<Result>(environment_id: string, work: () => Result): Result {
  const caller = callers.getStore();
  if (!caller) return work();
  return callers.run({ ...caller, scope: { ...caller.scope, environment_id } }, work);
}
