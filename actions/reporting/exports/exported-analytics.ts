/** Exports usage analytics of all published customers in the shape of `POST /events/analytics`, in batches of customers. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type ExportedUsageLine, USAGE_ANALYTICS_COLUMNS } from '../../../core/platform/export/usage-analytics.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { GroupModel } from '../../../storage/models/catalog/group.ts';
import { type AnalyticsRow, loadUsageAnalytics } from '../usage/usage-analytics.ts';
import { defineExportKind, type ExportInput } from './export-kind.ts';

export const usageAnalyticsExport = defineExportKind<ExportedUsageLine>({
  // The export contains amounts, so it requires the permission to read invoices.
  reads: ['event', 'invoice', 'customer'],
  columns: USAGE_ANALYTICS_COLUMNS,
  keys: { customer_id: ({ customer }) => customer?.id ?? null },
  rows: readAnalytics,
});

const CUSTOMERS_PER_BATCH = 500;

async function* readAnalytics(
  stores: Stores,
  scope: Scope,
  { start_us, end_us, now, signal }: ExportInput,
): AsyncGenerator<readonly ExportedUsageLine[]> {
  const whole = {
    feature_ids: null,
    meter_ids: null,
    sources: null,
    property_filters: null,
    group_by: { source: false, properties: [] },
  };
  for (let after = ''; ; ) {
    signal.throwIfAborted();
    const customers = await CustomerModel.in(scope, stores.postgres)
      .where('status', 'published')
      .where('id', '>', after)
      .orderBy('id')
      .limit(CUSTOMERS_PER_BATCH);
    const { rows } = await loadUsageAnalytics(stores, scope, {
      ...whole,
      customers,
      external_customer_ids: customers.map(({ external_id }) => external_id),
      window_size: null,
      billing_anchor_ms: null,
      start_us,
      end_us,
      now,
    });
    yield await buildLines(stores, scope, { rows, customers, start_us, end_us });
    if (customers.length < CUSTOMERS_PER_BATCH) return;
    after = customers.at(-1)!.id;
  }
}

type AnalyticsBatch = Pick<ExportInput, 'start_us' | 'end_us'> & {
  rows: readonly AnalyticsRow[];
  customers: readonly CustomerModel[];
};

async function buildLines(
  { postgres }: Stores,
  scope: Scope,
  { rows, customers, start_us, end_us }: AnalyticsBatch,
): Promise<ExportedUsageLine[]> {
  const groups = await GroupModel.byId(
    scope,
    rows.map(({ feature }) => feature?.group_id),
    postgres,
  );
  const byExternalId = new Map(customers.map((customer) => [customer.external_id, customer]));
  return rows.map(({ item, external_customer_id, meter, feature, usage, cost, event_count }) => ({
    customer: byExternalId.get(external_customer_id) ?? null,
    external_customer_id,
    start_us,
    end_us,
    feature,
    feature_group_name: groups.get(feature?.group_id ?? '')?.name ?? null,
    meter,
    event_count,
    usage,
    cost,
    currency: item?.subscription.currency ?? null,
  }));
}
