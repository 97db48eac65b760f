/**
 * Finds when the clock of an environment checks thresholds and alerts (docs/rules/clock.md, "Advancing"). Both are checked at midnight UTC
 * after days on which a customer with a threshold has usage. Alerts are also checked after days with movements of credits, and when a
 * period begins. The first midnight of an advance is always checked, because thresholds may have been set since the last check.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import { toInstant } from '../../core/foundation/time/instant.ts';
import { findNextEventTime } from '../../storage/events/next-event.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import { findAdvanceStart } from '../../storage/models/schedule/clock-advances.ts';
import { findNextPeriodAfterReached, listExternalIdsToAlert } from '../../storage/queue/due-alerts.ts';
import { listThresholdCustomers } from '../../storage/queue/due-billing.ts';
import { nextMovement } from '../../storage/queue/due-wallets.ts';

/** Returns the next check after `from`, the time of the clock; null if no threshold can be reached. */
export function findThresholdCheck(stores: Stores, scope: Scope, from: Date): Promise<Date | null> {
  return findNextCheck(stores, scope, { from, of: listThresholdCustomers });
}

/** Returns the next alert check. It is triggered by usage, by a movement of credits, or by the start of a period, for the period before. */
export async function findAlertCheck(stores: Stores, scope: Scope, from: Date): Promise<Date | null> {
  const moved = (since: Date) => nextMovement(stores.postgres, scope, since);
  const midnight = await findNextCheck(stores, scope, { from, of: listExternalIdsToAlert, moved });
  return findEarliest([midnight, await findNextPeriodAfterReached(stores.postgres, scope, from)]);
}

type NextCheckInput = {
  readonly from: Date;
  /** External ids of the customers whose usage may reach a threshold. */
  of(database: Database, scope: Scope): Promise<readonly string[]>;
  /** Returns the first trigger other than usage, at or after `since`. */
  moved?(since: Date): Promise<Date | null>;
};

async function findNextCheck(stores: Stores, scope: Scope, { from, of, moved }: NextCheckInput): Promise<Date | null> {
  const external_customer_ids = await of(stores.postgres, scope);
  if (external_customer_ids.length === 0) return null;
  const began = await findAdvanceStart(stores.postgres, scope);
  const first = midnightAfter(began === null ? from : new Date(toInstant(began)));
  if (from < first) return first;
  const since = midnightBefore(from);
  const used = await findNextEventTime(stores.clickhouse, scope, { external_customer_ids, from: since });
  const risen = findEarliest([used, (await moved?.(since)) ?? null]);
  return risen && midnightAfter(risen);
}

function findEarliest(instants: readonly (Date | null)[]): Date | null {
  const known = instants.filter((instant) => instant !== null);
  return known.length === 0 ? null : new Date(Math.min(...known.map((instant) => instant.getTime())));
}

function midnightBefore(instant: Date): Date {
  return new Date(Math.floor(instant.getTime() / DAY_MS) * DAY_MS);
}

function midnightAfter(instant: Date): Date {
  return new Date(midnightBefore(instant).getTime() + DAY_MS);
}
