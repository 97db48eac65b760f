/**
 * Loads the records that an analytics query names. A missing record is refused, because its empty result would suggest that it has no usage
 * (docs/rules/usage.md, "Analytics").
 */

import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { WindowSize } from '../../../core/foundation/time/window.ts';
import {
  type AnalyticsGroup,
  type GroupBy,
  hasEventGroups,
  NO_GROUP,
  toAnalyticsGroup,
} from '../../../core/metering/analytics/group-by.ts';
import type { DividingField } from '../../../storage/concurrency/query-bounds.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { prepareQuery } from '../../../storage/models/foundation/prepared.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';

export type AnalyticsRecordIds = {
  /** Null means all customers with a subscription. */
  readonly external_customer_ids: readonly string[] | null;
  /** Whether children of the named customers are included. */
  readonly include_children?: boolean;
  /** Customers of `external_customer_ids` that the caller has read already. A customer archived meanwhile is then not refused. */
  readonly customers?: readonly CustomerModel[];
  readonly feature_ids: readonly string[] | null;
  readonly meter_ids: readonly string[] | null;
};

type AnalyticsRecords = {
  /** Feature of each meter. If several features have one meter, it is a requested one, otherwise the oldest. */
  readonly features: ReadonlyMap<string, FeatureModel>;
  /** Null means all customers. */
  readonly customers: readonly CustomerModel[] | null;
};

export async function loadAnalyticsRecords(
  database: Database,
  scope: Scope,
  query: AnalyticsRecordIds,
): Promise<AnalyticsRecords> {
  const [features, customers] = await Promise.all([
    loadFeatures(database, scope, query.feature_ids),
    loadCustomers(database, scope, query),
    checkMeters(database, scope, query.meter_ids),
  ]);
  return { features, customers };
}

/** Loads the named features. They may be archived, because usage of their meters is still billed. */
async function loadFeatures(database: Database, scope: Scope, ids: readonly string[] | null) {
  const query = FeatureModel.in(scope, database).orderBy(['created_at', 'id']);
  const narrowed = ids ? query.whereIn('id', [...ids]) : query.where('status', 'published').whereNotNull('meter_id');
  const found = await prepareQuery(narrowed);
  checkFound('feature', ids ?? [], new Set(found.map(({ id }) => id)));
  const features = new Map<string, FeatureModel>();
  for (const feature of found) {
    if (feature.meter_id && !features.has(feature.meter_id)) features.set(feature.meter_id, feature);
  }
  return features;
}

async function loadCustomers(
  database: Database,
  scope: Scope,
  { external_customer_ids: wanted, include_children, customers: known }: AnalyticsRecordIds,
): Promise<readonly CustomerModel[] | null> {
  if (known !== undefined || wanted === null) return known ?? null;
  const published = () => CustomerModel.in(scope, database).where('status', 'published').orderBy('id');
  const customers = await prepareQuery(published().whereIn('external_id', [...wanted]));
  checkFound('customer with external id', wanted, new Set(customers.map(({ external_id }) => external_id)));
  if (!include_children) return customers;
  const ids = customers.map(({ id }) => id);
  // Excludes children that the request names as well.
  const children = await published().whereIn('parent_customer_id', ids).whereNotIn('id', ids);
  return [...customers, ...children];
}

async function checkMeters(database: Database, scope: Scope, ids: readonly string[] | null): Promise<void> {
  if (ids === null) return;
  const found = await MeterModel.in(scope, database)
    .select('id')
    .whereIn('id', [...ids]);
  checkFound('meter', ids, new Set(found.map(({ id }) => id)));
}

function checkFound(what: string, wanted: readonly string[], found: ReadonlySet<string>): void {
  const missing = wanted.find((id) => !found.has(id));
  if (missing !== undefined) throw notFound(what, missing);
}

/** Splits a key built by `key_of`; without groups the key is the customer. */
export function parseAnalyticsKey(
  { group_by }: { group_by: GroupBy },
  key: string,
): { customer: string; group: AnalyticsGroup } {
  if (!hasEventGroups(group_by)) return { customer: key, group: NO_GROUP };
  const [customer = '', ...values] = JSON.parse(key) as string[];
  return { customer, group: toAnalyticsGroup(group_by, values) };
}

type DividedQuery = { readonly group_by: GroupBy; readonly window_size: WindowSize | null };

export function deriveDividing({ group_by, window_size }: DividedQuery): DividingField {
  if (hasEventGroups(group_by)) return 'group_by';
  return window_size ? 'window_size' : 'external_customer_ids';
}
