/**
 * When the clock of an environment looks for what has reached a threshold or an alert: at midnight UTC, after days on which a customer with a
 * threshold has used something, or, of alerts, credits have moved, and of these where a period begins (docs/rules/clock.md, "Advancing"). The first midnight of an advance in any case: thresholds may have
 * been set since usage was looked at.
 */
import type { Scope } from '../../core/scope.ts';
import { toInstant } from '../../core/time/instant.ts';
import { findNextPeriodAfterReached, listExternalIdsToAlert } from '../../storage/due-alerts.ts';
import { listThresholdCustomers } from '../../storage/due-billing.ts';
import { nextMovement } from '../../storage/due-wallets.ts';
import { findNextEventTime } from '../../storage/events/next-event.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { findAdvanceStart } from '../../storage/test-clocks.ts';

/** After `from`, where the clock stands; null where nothing can be reached. */
export function findThresholdCheck(stores: Stores, scope: Scope, from: Date): Promise<Date | null> {
  return findNextCheck(stores, scope, { from, of: listThresholdCustomers });
}

/** The same of alerts, which credits that move may set off as well; and at the instant at which a period begins, of what was reached in the one before. */
export async function findAlertCheck(stores: Stores, scope: Scope, from: Date): Promise<Date | null> {
  const moved = (since: Date) => nextMovement(stores.postgres, scope, since);
  const midnight = await findNextCheck(stores, scope, { from, of: listExternalIdsToAlert, moved });
  return findEarliest([midnight, await findNextPeriodAfterReached(stores.postgres, scope, from)]);
}

type NextCheckInput = {
  readonly from: Date;
  /** Whose usage may reach it, by their external ids. */
  of(database: Database, scope: Scope): Promise<readonly string[]>;
  /** When something else did first, at this instant or behind it. */
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

const DAY_MS = 86_400_000;

function midnightBefore(instant: Date): Date {
  return new Date(Math.floor(instant.getTime() / DAY_MS) * DAY_MS);
}

function midnightAfter(instant: Date): Date {
  return new Date(midnightBefore(instant).getTime() + DAY_MS);
}
