/** Clocks whose advance has ended without having arrived: its run was given up, or its worker died in the last try. */
import type { Scope } from '../core/scope.ts';
import type { Database } from './stores.ts';

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

/** From where the clock of the environment is, or was last, advanced; null where it never was, or there is none. */
export async function advancedFrom(database: Database, { tenant_id, environment_id }: Scope): Promise<string | null> {
  const clocks: { advanced_from: string }[] = await database('test_clocks')
    .where({ tenant_id, environment_id })
    .select('advanced_from');
  return clocks[0]?.advanced_from ?? null;
}
