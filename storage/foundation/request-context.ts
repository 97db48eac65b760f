/**
 * The caller on whose behalf the process works, along the whole call chain. A request sets it once (api/http/mount.ts), and so does a job
 * that works for one tenant. The tenant guard of Postgres checks every statement against its scope
 * (postgres/tenant-guard/tenant-guard.ts), and the audit log records the caller (models/foundation/record-changes.ts). Without a context
 * the process works for all tenants: the pipeline, the clock, the lookup of a key.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { CallValue } from './call-value.ts';

export type RequestContext = {
  readonly scope: Scope;
  readonly user_id: string;
  /** Null if the request came without an API key. */
  readonly secret_id: string | null;
  readonly request_id: string | null;
  /** Clock of the environment, if it has one, with its instant when the request came. */
  readonly clock?: { readonly id: string; readonly target_time?: string | null; readonly now: Date } | null;
  /** Set for a request with an Idempotency-Key whose effects are recorded (models/foundation/request-effects.ts). */
  readonly key?: RequestKey;
  /** Set for a request that reads or changes one record (models/foundation/target-record.ts). */
  readonly target?: TargetRecord;
};

/** The record that a request names in its path, as its statements have met it. */
export type TargetRecord = {
  /** Undefined if the request creates the record. A setting has its key until its row is found. */
  id: string | undefined;
  /** Entity tags of the header If-Match, one of which the record must have; `*` if any will do. */
  readonly if_match?: Set<string> | '*' | undefined;
  /** State that was read or written last. */
  row?: object;
  /** Records that the request created, by id. */
  readonly made: Map<string, object>;
  /** Last transaction that has locked the record and found it as the condition demands. */
  held_by?: unknown;
};

/** Idempotency-Key as in its row. Its scope remains that of the request, even if the request writes in another environment. */
export type RequestKey = Scope & {
  readonly id: string;
  readonly holder: string;
  /** True if an effect was recorded, whether or not its transaction has committed. */
  has_effects: boolean;
  /**
   * True if an earlier request with this key has committed its effects. This request then completes the remaining work,
   * and no further effects are recorded.
   */
  readonly goes_on: boolean;
  /** Returns the answer to store with a transaction; set if that answer cannot be read again later. */
  shows?: (made: never) => unknown;
};

const requestContexts = new CallValue<RequestContext>();

export function runAs<Result>(context: RequestContext, work: () => Result): Result {
  return requestContexts.run(context, work);
}

export function currentRequestContext(): RequestContext | undefined {
  return requestContexts.get();
}

/** Runs the caller's work under the Idempotency-Key of its request. */
export function runUnderKey<Result>(key: RequestKey, work: () => Result): Result {
  const context = requestContexts.get();
  return context ? requestContexts.run({ ...context, key }, work) : work();
}

/** Runs work that serves several callers at once and belongs to none of them, even if one of them starts it. */
export function runAsSystem<Result>(work: () => Result): Result {
  // `exit` would remove the hooks of all promises of the process and install them again.
  return requestContexts.get() === undefined ? work() : requestContexts.run(undefined, work);
}

/** Runs the caller's work in another environment of its tenant. The calling code has checked its permission. */
export function runInEnvironment<Result>(environment_id: string, work: () => Result): Result {
  const context = requestContexts.get();
  if (!context) return work();
  return requestContexts.run({ ...context, scope: { ...context.scope, environment_id } }, work);
}
