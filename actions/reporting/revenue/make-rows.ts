/** Computes revenue rows from Postgres, for customers, for queued invoices and for subscriptions. */

import { indexById } from '../../../core/foundation/by-id.ts';
import { ZERO } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { EarnedLine } from '../../../core/invoicing/revenue/line.ts';
import {
  buildRecurringRow,
  buildRevenueRows,
  type OwnedLine,
  type RecurringRow,
  type RevenueRow,
  toRevenueKey,
} from '../../../core/invoicing/revenue/rows.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { listInvoiceLines, listLinesSince } from '../../../storage/reporting/revenue/earned-lines.ts';
import { loadStoredRecurring, loadStoredRevenue } from '../../../storage/reporting/revenue/rows.ts';
import { requireRecord, toBillableItem, toBilledSubscription } from '../../rating/billable-items.ts';

/** Loads all revenue rows of these customers. */
export async function loadCustomersRevenue(
  database: Database,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<RevenueRow[]> {
  return buildRevenueRows(await listOwnerLines(database, scope, { customer_ids, since: null }));
}

/** Loads the revenue rows to which these invoices contribute, or contributed before a change. */
export async function loadInvoicesRevenue(
  database: Database,
  scope: Scope,
  invoice_ids: readonly string[],
): Promise<RevenueRow[]> {
  const ownedLines = await addOwners(database, scope, await listInvoiceLines(scope, invoice_ids, database));
  const touched = buildRevenueRows(ownedLines);
  if (touched.length === 0) return [];
  const since = Date.UTC(Math.min(...touched.map(({ year }) => year)), 0, 1);
  const customer_ids = [...new Set(touched.map(({ customer_id }) => customer_id))];
  const rows = buildRevenueRows(await listOwnerLines(database, scope, { customer_ids, since }));
  const byKey = new Map(rows.map((row) => [toRevenueKey(row), row]));
  return touched.map((row) => byKey.get(toRevenueKey(row)) ?? { ...row, cells: [] });
}

type RevenueOwners = { readonly customer_ids: readonly string[]; readonly since: Milliseconds | null };

async function listOwnerLines(
  database: Database,
  scope: Scope,
  { customer_ids, since }: RevenueOwners,
): Promise<OwnedLine[]> {
  const own = await SubscriptionModel.in(scope, database)
    .select('id')
    .whereIn('customer_id', [...customer_ids]);
  const query = { subscription_ids: own.map(({ id }) => id), customer_ids, since };
  return addOwners(database, scope, await listLinesSince(scope, query, database));
}

async function addOwners(database: Database, scope: Scope, lines: readonly EarnedLine[]): Promise<OwnedLine[]> {
  const ids = lines.map(({ line }) => line.subscription_id);
  const subscriptions = await SubscriptionModel.byId(scope, ids, database);
  return lines.map((one) => {
    const { subscription_id, customer_id } = one.line;
    return { ...one, owner_id: subscriptions.get(subscription_id ?? '')?.customer_id ?? customer_id };
  });
}

export async function loadSubscriptionsRecurring(
  database: Database,
  scope: Scope,
  subscriptions: readonly SubscriptionModel[],
): Promise<RecurringRow[]> {
  const records = await SubscriptionLineItemModel.in(scope, database)
    .whereIn('subscription_id', [...subscriptions.map(({ id }) => id)])
    .where('price_type', 'FIXED');
  const prices = await PriceModel.byId(
    scope,
    records.map(({ price_id }) => price_id),
    database,
  );
  const known = indexById(subscriptions);
  return records.map((record) => {
    const subscription = known.get(record.subscription_id)!;
    const item = toBillableItem(record, {
      price: requireRecord(prices, record.price_id, 'price'),
      meter: null,
      subscription,
    });
    const { customer_id, currency } = subscription;
    const is_charged = record.status === 'published' && isCharged(subscription);
    return buildRecurringRow(item, {
      customer_id,
      currency,
      is_charged,
      end_ms: toBilledSubscription(subscription).end_ms,
    });
  });
}

const UNCHARGED: readonly string[] = ['draft', 'incomplete'];

function isCharged({ status, subscription_status }: SubscriptionModel): boolean {
  return status === 'published' && !UNCHARGED.includes(subscription_status);
}

export async function loadCustomersRecurring(
  database: Database,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<RecurringRow[]> {
  const subscriptions = await SubscriptionModel.in(scope, database).whereIn('customer_id', [...customer_ids]);
  return loadSubscriptionsRecurring(database, scope, subscriptions);
}

/** Lists the stored revenue rows that can no longer be computed from Postgres, each with the amount 0. */
export async function listGoneRows(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  scope: Scope,
  made: { customer_ids: readonly string[]; revenue: readonly RevenueRow[]; recurring: readonly RecurringRow[] },
): Promise<{ revenue: RevenueRow[]; recurring: RecurringRow[] }> {
  const [revenue, recurring] = await Promise.all([
    loadStoredRevenue(clickhouse, scope, made.customer_ids),
    loadStoredRecurring(clickhouse, scope, made.customer_ids),
  ]);
  const known = new Set(made.revenue.map(toRevenueKey));
  const lines = new Set(made.recurring.map(toRecurringKey));
  return {
    revenue: revenue
      .filter((row) => !known.has(toRevenueKey(row)))
      .map(({ customer_id, currency, year }) => ({ customer_id, currency, year, cells: [] })),
    recurring: recurring.filter((row) => !lines.has(toRecurringKey(row))).map((row) => ({ ...row, monthly: ZERO })),
  };
}

export function toRecurringKey({
  customer_id,
  line_item_id,
}: Pick<RecurringRow, 'customer_id' | 'line_item_id'>): string {
  return JSON.stringify([customer_id, line_item_id]);
}
