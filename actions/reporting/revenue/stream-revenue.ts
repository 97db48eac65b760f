/**
 * Computes revenue rows for the changes in the outbox and writes them to ClickHouse. After a crash between the two stores the changes are
 * processed again: the same rows are written with a greater version (docs/decisions/0017-revenue-rows.md).
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import {
  deleteRevenueChanges,
  nextRevenueVersion,
  type RevenueChange,
  type RevenueChangeKind,
  takeRevenueChanges,
} from '../../../storage/reporting/revenue/outbox.ts';
import { writeRecurring, writeRevenue } from '../../../storage/reporting/revenue/rows.ts';
import {
  listGoneRows,
  loadCustomersRecurring,
  loadCustomersRevenue,
  loadInvoicesRevenue,
  loadSubscriptionsRecurring,
} from './make-rows.ts';

type RevenueStores = Pick<Stores, 'postgres' | 'clickhouse'>;

const QUEUED_AT_ONCE = 2_000;

/** Runs until the outbox is empty; returns the number of processed changes. */
export async function streamRevenue(stores: RevenueStores, onDone?: (queued: number) => void): Promise<number> {
  for (let queued = 0; ; ) {
    const taken = await stores.postgres.transaction((transaction) => streamSome(stores, transaction));
    queued += taken;
    onDone?.(queued);
    if (taken < QUEUED_AT_ONCE) return queued;
  }
}

async function streamSome(stores: RevenueStores, transaction: Transaction): Promise<number> {
  const queued = await takeRevenueChanges(transaction, QUEUED_AT_ONCE);
  if (queued.length === 0) return 0;
  const version = await nextRevenueVersion(transaction);
  for (const [first, ...others] of groupBy(queued, scopeKey).values())
    await makeRows(stores, transaction, { queued: [first, ...others], version });
  await deleteRevenueChanges(transaction, queued);
  return queued.length;
}

type RevenueRowsInput = { readonly queued: readonly [RevenueChange, ...RevenueChange[]]; readonly version: string };

async function makeRows(
  stores: RevenueStores,
  transaction: Transaction,
  { queued, version }: RevenueRowsInput,
): Promise<void> {
  const scope: Scope = { tenant_id: queued[0].tenant_id, environment_id: queued[0].environment_id };
  const listIds = (kind: RevenueChangeKind) => [
    ...new Set(queued.flatMap((one) => (one.kind === kind ? one.entity_id : []))),
  ];
  const customer_ids = listIds('customer');
  const subscriptions = await SubscriptionModel.byId(scope, listIds('subscription'), transaction);
  const ofCustomers = {
    customer_ids,
    revenue: await loadCustomersRevenue(transaction, scope, customer_ids),
    recurring: await loadCustomersRecurring(transaction, scope, customer_ids),
  };
  const gone =
    customer_ids.length > 0 ? await listGoneRows(stores, scope, ofCustomers) : { revenue: [], recurring: [] };
  const revenue = await loadInvoicesRevenue(transaction, scope, listIds('invoice'));
  const recurring = await loadSubscriptionsRecurring(transaction, scope, [...subscriptions.values()]);
  await writeRevenue(stores.clickhouse, scope, {
    rows: [...gone.revenue, ...ofCustomers.revenue, ...revenue],
    version,
  });
  await writeRecurring(stores.clickhouse, scope, {
    rows: [...gone.recurring, ...ofCustomers.recurring, ...recurring],
    version,
  });
}
