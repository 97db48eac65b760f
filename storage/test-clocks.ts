/** Clocks whose advance has ended without having arrived: its run was given up, or its worker died in the last try. */
import type { Scope } from '../core/scope.ts';
import type { Database, Transaction } from './stores.ts';

/** Where the clock stands, and why it went no further, is for people to read; it may be advanced again from there. */
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

/** The first worker of an advance is noted by its name; any other makes it known, before it does anything, that they are several. */
export async function beginAdvance(
  database: Database,
  { tenant_id, environment_id, workflow_id }: ClockAdvance,
  worker: string,
): Promise<void> {
  const text = `update test_clocks set worker = case when worker is null then ? else '' end
                 where tenant_id = ? and environment_id = ? and workflow_id = ? and test_clock_status = 'advancing'`;
  await database.raw(text, [worker, tenant_id, environment_id, workflow_id]);
}

/** The worker has ended what it does of the advance: whoever goes on is the first again, unless others have been at it, too. */
export async function finishAdvance(
  transaction: Transaction,
  { tenant_id, environment_id, workflow_id }: ClockAdvance,
  worker: string,
): Promise<void> {
  await transaction('test_clocks').where({ tenant_id, environment_id, workflow_id, worker }).update({ worker: null });
}

/**
 * Whether the advance goes on, and nobody but this worker ever did anything of it: then nobody else has written in the environment since
 * it was asked for. It stays so until the transaction ends: whoever stops the clock, or takes the advance over, waits for it.
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
 * Behind which instant all is looked at anew in the advance of this environment, or was in the last: where it began, or just before that
 * where the one before it had failed there; null where there was none.
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
