/**
 * A request in an environment that has a clock writes at the instant at which the clock stood when it came
 * (docs/rules/clock.md, "Advancing"). The first write of its transaction holds the clock there until it ends: an advance begins
 * behind it, and a write that comes behind the advance is refused, so that nothing is written at an instant that is gone.
 */
import { toAdvancingError } from '../../core/test-clock/record.ts';
import { currentRequestContext, runAsSystem } from '../request-context.ts';
import type { Database } from '../stores.ts';

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
