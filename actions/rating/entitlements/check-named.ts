/** Checks that the features and subscriptions of a query exist: an unknown one is an error, not a usage of 0. */
import { notFound } from '../../../core/foundation/error.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { EntitlementReadContext } from '../allowances/entitled-features.ts';

type UsageReferences = {
  readonly feature_ids?: readonly string[] | undefined;
  readonly subscription_ids?: readonly string[] | undefined;
};

export async function checkUsageReferences(
  customer_id: string,
  { feature_ids = [], subscription_ids = [] }: UsageReferences,
  { scope, database }: EntitlementReadContext,
): Promise<void> {
  const features = await FeatureModel.byId(scope, feature_ids, database);
  for (const id of feature_ids) if (!features.has(id)) throw notFound('feature', id);
  const subscriptions = await SubscriptionModel.byId(scope, subscription_ids, database);
  for (const id of subscription_ids)
    if (subscriptions.get(id)?.customer_id !== customer_id)
      throw notFound(`subscription of customer ${customer_id}`, id);
}

/** Returns the published features with these lookup keys; an unknown key is an error. */
export async function listFeatureIdsByLookupKey(
  lookup_keys: readonly string[],
  { scope, database }: EntitlementReadContext,
): Promise<string[]> {
  if (lookup_keys.length === 0) return [];
  const named = await FeatureModel.in(scope, database)
    .select('id', 'lookup_key')
    .where('status', 'published')
    .whereIn('lookup_key', [...lookup_keys]);
  for (const key of lookup_keys)
    if (!named.some(({ lookup_key }) => lookup_key === key)) throw notFound('feature', key);
  return named.map(({ id }) => id);
}
