/**
 * Records the progress of clock advances, and ends those whose run failed for good or whose worker died in the last
 * attempt.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database, Transaction } from '../../foundation/stores.ts';

/** SQL that ends broken advances. The clock stops at its current instant, with the failure, and can be advanced again from that instant. */
export const END_BROKEN_ADVANCES = `
  update test_clocks as clock
     set test_clock_status = 'failed', target_time = null, updated_at = now(),
         failure = coalesce(run.error, '{"code": "internal_error", "message": "the advance was broken off"}'::jsonb)
    from workflow_runs as run
   where run.id = clock.workflow_id and run.tenant_id = clock.tenant_id and run.environment_id = clock.environment_id
     and clock.test_clock_status = 'advancing' and run.workflow_status in ('Failed', 'TimedOut')`;

export async function endBrokenAdvance(database: Database, { tenant_id, environment_id }: Scope): Promise<void> {
  const text = `${END_BROKEN_ADVANCES} and clock.tenant_id = ? and clock.environment_id = ?`;
  await database.raw(text, [tenant_id, environment_id]);
}

type ClockAdvance = Scope & { readonly workflow_id: string };

/**
 * Records the worker of an advance: the first by its name. Any further worker replaces the name by '', which means that there were several.
 */
export async function beginAdvance(
  database: Database,
  { tenant_id, environment_id, workflow_id }: ClockAdvance,
  worker: string,
): Promise<void> {
  const text = `update test_clocks set worker = case when worker is null then ? else '' end
                 where tenant_id = ? and environment_id = ? and workflow_id = ? and test_clock_status = 'advancing'`;
  await database.raw(text, [worker, tenant_id, environment_id, workflow_id]);
}

/**
 * Records that the worker has finished its part of the advance. The next worker counts as the first again, unless several have worked on
 * it.
 */
export async function finishAdvance(
  transaction: Transaction,
  { tenant_id, environment_id, workflow_id }: ClockAdvance,
  worker: string,
): Promise<void> {
  await transaction('test_clocks').where({ tenant_id, environment_id, workflow_id, worker }).update({ worker: null });
}

/**
 * Whether the advance continues and only this worker has worked on it: then no other process has written in the environment since
 * the request. The lock preserves this until the transaction ends: stopping the clock or taking over the advance waits for it.
 */
export async function lockAdvance(
  transaction: Transaction,
  { tenant_id, environment_id, workflow_id }: ClockAdvance,
  worker: string,
): Promise<boolean> {
  const held = await transaction('test_clocks')
    .where({ tenant_id, environment_id, workflow_id, worker, test_clock_status: 'advancing' })
    .forShare()
    .select('id');
  return held.length > 0;
}

/**
 * Finds the instant after which the current advance, or else the last one, checks everything: its start, or just before it if the previous
 * advance failed there. Null if there was no advance.
 */
export async function findAdvanceStart(
  database: Database,
  { tenant_id, environment_id }: Scope,
): Promise<string | null> {
  const from = `advanced_from - case when is_at_failure then interval '1 millisecond' else interval '0' end as since`;
  const clocks: { since: string }[] = await database('test_clocks')
    .where({ tenant_id, environment_id })
    .select(database.raw(from));
  return clocks[0]?.since ?? null;
}
