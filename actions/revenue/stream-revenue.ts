/**
 * Makes revenue rows of what the outbox has told, and writes them to ClickHouse. A crash between the two stores leaves what was told to
 * be told again: the same rows are made anew, with a greater version (docs/decisions/0017-revenue-rows.md).
 */
import { groupBy } from '../../core/group-by.ts';
import { type Scope, scopeKey } from '../../core/scope.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import {
  nextRevenueVersion,
  removeToldRevenue,
  type ToldKind,
  type ToldRevenue,
  takeToldRevenue,
} from '../../storage/revenue/outbox.ts';
import { writeRecurring, writeRevenue } from '../../storage/revenue/rows.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import {
  goneRows,
  recurringOfCustomers,
  recurringOfSubscriptions,
  revenueOfCustomers,
  revenueOfInvoices,
} from './make-rows.ts';

type RevenueStores = Pick<Stores, 'postgres' | 'clickhouse'>;

const TOLD_AT_ONCE = 2_000;

/** Until nothing waits; answers how many were told. */
export async function streamRevenue(stores: RevenueStores, onDone?: (told: number) => void): Promise<number> {
  for (let told = 0; ; ) {
    const taken = await stores.postgres.transaction((transaction) => streamSome(stores, transaction));
    told += taken;
    onDone?.(told);
    if (taken < TOLD_AT_ONCE) return told;
  }
}

async function streamSome(stores: RevenueStores, transaction: Transaction): Promise<number> {
  const told = await takeToldRevenue(transaction, TOLD_AT_ONCE);
  if (told.length === 0) return 0;
  const version = await nextRevenueVersion(transaction);
  for (const [first, ...others] of groupBy(told, scopeKey).values())
    await makeRows(stores, transaction, { told: [first, ...others], version });
  await removeToldRevenue(transaction, told);
  return told.length;
}

type Making = { readonly told: readonly [ToldRevenue, ...ToldRevenue[]]; readonly version: string };

async function makeRows(stores: RevenueStores, transaction: Transaction, { told, version }: Making): Promise<void> {
  const scope: Scope = { tenant_id: told[0].tenant_id, environment_id: told[0].environment_id };
  const idsOf = (kind: ToldKind) => [...new Set(told.flatMap((one) => (one.kind === kind ? one.entity_id : [])))];
  const customer_ids = idsOf('customer');
  const subscriptions = await SubscriptionModel.byId(scope, idsOf('subscription'), transaction);
  const ofCustomers = {
    customer_ids,
    revenue: await revenueOfCustomers(transaction, scope, customer_ids),
    recurring: await recurringOfCustomers(transaction, scope, customer_ids),
  };
  const gone = customer_ids.length > 0 ? await goneRows(stores, scope, ofCustomers) : { revenue: [], recurring: [] };
  const revenue = await revenueOfInvoices(transaction, scope, idsOf('invoice'));
  const recurring = await recurringOfSubscriptions(transaction, scope, [...subscriptions.values()]);
  await writeRevenue(stores.clickhouse, scope, {
    rows: [...gone.revenue, ...ofCustomers.revenue, ...revenue],
    version,
  });
  await writeRecurring(stores.clickhouse, scope, {
    rows: [...gone.recurring, ...ofCustomers.recurring, ...recurring],
    version,
  });
}
