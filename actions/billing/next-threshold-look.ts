/**
 * When the clock of an environment looks for usage that has reached a threshold: at midnight UTC, after days on which a customer with a
 * threshold has used something (docs/rules/clock.md, "Advancing"). The first midnight of an advance in any case: thresholds may have
 * been set since usage was looked at.
 */
import type { Scope } from '../../core/scope.ts';
import { instantOf } from '../../core/time/instant.ts';
import { thresholdCustomers } from '../../storage/due-billing.ts';
import { nextEventOf } from '../../storage/events/next-event.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { advancedFrom } from '../../storage/test-clocks.ts';

/** After `from`, where the clock stands; null where nothing can be reached. */
export function nextThresholdLook(stores: Stores, scope: Scope, from: Date): Promise<Date | null> {
  return nextLook(stores, scope, { from, of: thresholdCustomers });
}

/** The same of whatever the usage of these customers may reach, by their external ids. */
export async function nextLook(
  stores: Stores,
  scope: Scope,
  { from, of }: { from: Date; of(database: Database, scope: Scope): Promise<readonly string[]> },
): Promise<Date | null> {
  const external_customer_ids = await of(stores.postgres, scope);
  if (external_customer_ids.length === 0) return null;
  const began = await advancedFrom(stores.postgres, scope);
  const first = midnightAfter(began === null ? from : new Date(instantOf(began)));
  if (from < first) return first;
  const used = await nextEventOf(stores.clickhouse, scope, { external_customer_ids, from: midnightBefore(from) });
  return used && midnightAfter(used);
}

const DAY_MS = 86_400_000;

function midnightBefore(instant: Date): Date {
  return new Date(Math.floor(instant.getTime() / DAY_MS) * DAY_MS);
}

function midnightAfter(instant: Date): Date {
  return new Date(midnightBefore(instant).getTime() + DAY_MS);
}
