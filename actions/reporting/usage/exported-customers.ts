/**
 * Customers of the usage export: those with events in the range. With amounts, also those billed for a meter, because a meter that never
 * resets is charged in periods without events. In byte order of the external ids, page by page.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { customersWithEvents } from '../../../storage/events/event-names.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';

type ExportedCustomersPage = {
  readonly start_us: number;
  readonly end_us: number;
  readonly amounts: boolean;
  readonly event_names: string[];
  /** The page begins after this external id. */
  readonly after: string;
  readonly limit: number;
};

/** Lists customers; fewer than `limit` ids mean the last page. */
export async function listExportedCustomers(
  stores: Stores,
  { tenant_id, environment_id }: Scope,
  page: ExportedCustomersPage,
): Promise<string[]> {
  const { start_us, end_us, event_names, after, limit } = page;
  const scope = { tenant_id, environment_id };
  const params = { ...scope, event_names, after, start_us, end_us, limit };
  const rows = event_names.length > 0 ? await customersWithEvents.run(stores.clickhouse, params) : [];
  const active = rows.map(({ external_customer_id }) => external_customer_id);
  if (!page.amounts) return active;
  const all = new Set([...active, ...(await billedCustomers(stores, scope, page))]);
  return [...all].sort(byBytes).slice(0, limit);
}

async function billedCustomers(
  { postgres }: Stores,
  scope: Scope,
  { after, limit }: ExportedCustomersPage,
): Promise<string[]> {
  const lines = SubscriptionLineItemModel.in(scope, postgres).select('subscription_id').where('price_type', 'USAGE');
  const subscriptions = SubscriptionModel.in(scope, postgres)
    .select('customer_id')
    .where('status', 'published')
    .where('id', 'in', lines);
  const customers = await CustomerModel.in(scope, postgres)
    .select('external_id')
    .groupBy('external_id')
    .where('id', 'in', subscriptions)
    .whereRaw('external_id collate "C" > ?', [after])
    .orderByRaw('external_id collate "C"')
    .limit(limit);
  return customers.map(({ external_id }) => external_id);
}

/** Compares by bytes, the sort order of both stores; UTF-16 has another order. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
