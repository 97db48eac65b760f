/** Revenue of final invoices by customer, by currency and over time, and recurring revenue (docs/rules/revenue.md). */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { WindowSize } from '../../../core/foundation/time/window.ts';
import { cutWindows, filterBegun } from '../../../core/invoicing/revenue/windows.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { loadClock } from '../../../storage/models/schedule/environment-clock.ts';
import { THRESHOLD_TASK } from '../../../storage/progress/threshold-arrivals.ts';
import {
  type CurrencyRevenue,
  type CustomerRevenue,
  loadRecurringMoves,
  loadRevenueByCurrency,
  loadRevenueByCustomer,
  loadRevenueByWindow,
  type RecurringMoves,
  type WindowRevenue,
} from '../../../storage/reporting/revenue/dashboard.ts';
import { findFirstMissingTime } from '../../../storage/reporting/revenue/outbox.ts';
import { DUE_WORK_NAMES } from '../../foundation/due-work-names.ts';
import { COMPUTE_TASK } from '../../invoicing/invoices/compute-later.ts';
import { FINALIZE_TASK } from '../../lifecycle/invoices/finalize-later.ts';
import { SYNC_JOB } from '../../lifecycle/subscriptions/sync-plan.ts';

type RevenueDashboardQuery = {
  readonly range: Period;
  readonly customer_ids: readonly string[] | null;
  readonly window_size: WindowSize;
  readonly limit: number;
  readonly offset: number;
  readonly now: Date;
  readonly signal?: AbortSignal;
};

export type RevenueDashboard = RevenueTrend & {
  readonly currencies: readonly CurrencyRevenue[];
  readonly customers: readonly (CustomerRevenue & { readonly customer: CustomerModel | null })[];
};

export async function loadRevenueDashboard(
  stores: Stores,
  scope: Scope,
  query: RevenueDashboardQuery,
): Promise<RevenueDashboard> {
  const as_of = await findKnownBefore(stores, scope, query.now);
  const [trend, currencies, customers] = await Promise.all([
    loadTrend(stores, scope, query),
    loadRevenueByCurrency(stores.clickhouse, scope, query),
    loadRevenueByCustomer(stores.clickhouse, scope, query),
  ]);
  const records = await CustomerModel.byId(
    scope,
    customers.map(({ customer_id }) => customer_id),
    stores.postgres,
  );
  return {
    ...trend,
    as_of,
    currencies,
    customers: customers.map((one) => ({ ...one, customer: records.get(one.customer_id) ?? null })),
  };
}

export type RevenueTrend = {
  readonly windows: readonly Period[];
  /** Windows with revenue. */
  readonly revenue: readonly WindowRevenue[];
  readonly recurring_windows: readonly Period[];
  readonly recurring: readonly RecurringMoves[];
  /** Invoices that became final before this instant are included. */
  readonly as_of: Milliseconds;
};

type RevenueTrendQuery = Pick<RevenueDashboardQuery, 'range' | 'customer_ids' | 'window_size' | 'now' | 'signal'>;

export async function loadRevenueTrend(stores: Stores, scope: Scope, query: RevenueTrendQuery): Promise<RevenueTrend> {
  const as_of = await findKnownBefore(stores, scope, query.now);
  return { ...(await loadTrend(stores, scope, query)), as_of };
}

/**
 * Jobs that may write an instant from before their transaction began, so that revenue is incomplete from the start of a running job: all
 * due work, and jobs that requests enqueue for invoices and subscriptions.
 */
const STAMPING_JOBS = [...DUE_WORK_NAMES, COMPUTE_TASK, FINALIZE_TASK, THRESHOLD_TASK, SYNC_JOB.task];

/**
 * Finds the instant before which revenue rows are complete. Must be called before the rows are read, so that they are at least as fresh as
 * this instant.
 */
async function findKnownBefore({ postgres }: Stores, scope: Scope, now: Date): Promise<Milliseconds> {
  const clock = await loadClock(postgres, scope);
  const missing = await findFirstMissingTime(postgres, scope, { clock, jobs: STAMPING_JOBS });
  return Math.min(missing ?? now.getTime(), now.getTime());
}

async function loadTrend(stores: Stores, scope: Scope, query: RevenueTrendQuery): Promise<Omit<RevenueTrend, 'as_of'>> {
  const windows = cutWindows(query.range, query.window_size);
  const recurring_windows = filterBegun(query.now.getTime(), windows);
  const instants = listInstants(recurring_windows, query.now.getTime());
  const [revenue, recurring] = await Promise.all([
    loadRevenueByWindow(stores.clickhouse, scope, {
      ...query,
      size: query.window_size,
      starts: windows.map(({ start }) => start),
    }),
    instants.length > 0 ? loadRecurringMoves(stores.clickhouse, scope, { ...query, instants }) : [],
  ]);
  return { windows, revenue, recurring_windows, recurring };
}

/** Lists the instants just before which recurring revenue is measured; the running window includes changes at the current instant. */
function listInstants(windows: readonly Period[], now: Milliseconds): Milliseconds[] {
  const [last] = windows.slice(-1);
  return last ? [...windows.map(({ start }) => start), last.end === now ? now + 1 : last.end] : [];
}
