/**
 * Prevents writes at a past instant in an environment with a test clock (docs/rules/clock.md, "Advancing"). A request
 * writes at the instant that the clock had at its arrival. Its first write locks the clock until the transaction ends,
 * so an advance waits. If the clock has advanced since the arrival, the write is rejected.
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
