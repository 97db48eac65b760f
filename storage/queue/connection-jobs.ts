/**
 * Jobs of one connection to a provider. At most one job per task waits, however many records are due, because a job
 * processes all of them.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { NewJob } from './jobs.ts';

/**
 * Maximum attempts after failures of this service's own stores. A failure of the provider pauses the connection and
 * does not count.
 */
const ATTEMPTS = 16;

export type JobConnection = Scope & { readonly id: string };

export function buildConnectionJob(task: string, { id, tenant_id, environment_id }: JobConnection): NewJob {
  const queue = `${task}:${id}`;
  const payload = { tenant_id, environment_id, connection_id: id };
  return { task, payload, key: queue, queue, max_attempts: ATTEMPTS };
}
