/** Jobs of one connection to a provider, of which it has one of each task waiting, however much there is to do. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { NewJob } from './jobs.ts';

/** Attempts after failures of our own stores; a failure of the provider pauses the connection and is no failed attempt. */
const ATTEMPTS = 16;

export type JobConnection = Scope & { readonly id: string };

export function buildConnectionJob(task: string, { id, tenant_id, environment_id }: JobConnection): NewJob {
  const queue = `${task}:${id}`;
  const payload = { tenant_id, environment_id, connection_id: id };
  return { task, payload, key: queue, queue, max_attempts: ATTEMPTS };
}
