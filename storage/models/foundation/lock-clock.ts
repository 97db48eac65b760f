/**
 * In an environment with a test clock, a request writes at the clock's instant at its arrival (docs/rules/clock.md, "Advancing").
 * The first write of its transaction locks the clock until the transaction ends. So an advance begins after it, and a write after
 * the advance is rejected: nothing is written at a past instant.
 */
import { toAdvancingError } from '../../../core/platform/test-clock/record.ts';
import { currentRequestContext, runAsSystem } from '../../foundation/request-context.ts';
import type { Database } from '../../foundation/stores.ts';

const lockedTransactions = new WeakSet<Database>();

export async function lockClock(transaction: Database): Promise<void> {
  const clock = currentRequestContext()?.clock;
  if (!clock || lockedTransactions.has(transaction)) return;
  const { rows } = await runAsSystem(async () =>
    transaction.raw(
      `select id from test_clocks where id = ? and frozen_time = ? and test_clock_status <> 'advancing' for share`,
      [clock.id, clock.now.toISOString()],
    ),
  );
  if (rows.length === 0) throw toAdvancingError({ id: clock.id, target_time: clock.target_time ?? null });
  lockedTransactions.add(transaction);
}
