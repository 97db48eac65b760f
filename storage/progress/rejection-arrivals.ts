/**
 * After events arrive that are not counted, a job emits `event.rejected` (docs/rules/webhooks.md, "Rejected events"): one a minute for each
 * environment and reason, however many arrive.
 */
import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import type { UncountedReason } from '../../core/metering/event/uncounted.ts';
import type { Database } from '../foundation/stores.ts';

export const REJECTION_TASK = 'notify-rejections';
const NOTICE_SECONDS = 60;

/** Events of an environment, the first received at `since_us`, are not counted. */
export type RejectionArrival = {
  readonly scope: Scope;
  readonly reason: UncountedReason;
  readonly since_us: Microseconds;
};

/** Enqueues the notices of one process. A notice that the process has enqueued within its minute costs no statement. */
export class RejectionNotices {
  /** Instant of the machine's clock at which the enqueued notice is due, by environment and reason. */
  readonly #due = new Map<string, number>();

  async enqueue(database: Database, arrivals: readonly RejectionArrival[]): Promise<void> {
    const now_ms = performance.now();
    for (const { scope, reason, since_us } of arrivals) {
      const key = `${REJECTION_TASK}:${scopeKey(scope)}:${reason}`;
      if ((this.#due.get(key) ?? 0) > now_ms) continue;
      if (this.#due.size >= REMEMBERED_MAX) this.#due.clear();
      this.#due.set(key, now_ms + NOTICE_SECONDS * 1000);
      const { tenant_id, environment_id } = scope;
      const payload = JSON.stringify({ tenant_id, environment_id, reason, since_us });
      await database.raw(ENQUEUE_SQL, [REJECTION_TASK, payload, NOTICE_SECONDS, key, key]);
    }
  }
}

const REMEMBERED_MAX = 10_000;

/** A waiting notice remains: it begins earlier. A running one may have read its events already. */
const ENQUEUE_SQL = `
  select graphile_worker.add_job(?::text, payload := ?::json, run_at := now() + ? * interval '1 second', max_attempts := 3,
           job_key := ?::text, job_key_mode := 'preserve_run_at')
   where not exists (select from graphile_worker.jobs where key = ?::text and locked_at is null and attempts < max_attempts)`;
