/** Updates an entitlement; its entity and feature are fixed. An omitted field keeps its value, and null clears it. */
import { hasGrants } from '../../../core/catalog/entitlement/grant-record.ts';
import { checkEntitlement, checkMeterOfGrants, type Entitlement } from '../../../core/catalog/entitlement/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { enqueueCustomerAlertCheck } from '../../../storage/progress/alert-arrivals.ts';
import { emitEntitlementChanges } from './emit-entitlement.ts';

export async function changeEntitlement(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, changes, author }: { id: string; changes: Partial<Entitlement>; author: Author },
): Promise<EntitlementModel> {
  return stores.postgres.transaction(async (database) => {
    const entitlement = await EntitlementModel.fetchChangeable(scope, id, database);
    const granted = { ...entitlement, ...changes };
    checkEntitlement(granted);
    if (hasGrants(granted)) {
      const { meter_id } = await FeatureModel.fetch(scope, entitlement.feature_id, { database });
      checkMeterOfGrants(granted, await MeterModel.fetch(scope, meter_id!, { database }));
    }
    const changed = await EntitlementModel.change(entitlement, changes, { by: author, database });
    if (changed === entitlement) return entitlement;
    await emitEntitlementChanges(database, 'updated', { entitlements: [changed], by: author });
    if (changes.alert_settings?.alert_enabled) await enqueueEntitlementAlertChecks(database, changed);
    return changed;
  });
}

/**
 * A threshold that is already crossed is reported at once for a subscription. Customers of a plan or an add-on are many: they are checked
 * at their next usage or by the hourly sweep.
 */
async function enqueueEntitlementAlertChecks(
  database: Transaction,
  { entity_type, entity_id, ...scope }: EntitlementModel,
): Promise<void> {
  if (entity_type !== 'SUBSCRIPTION') return;
  const { customer_id } = await SubscriptionModel.fetch(scope, entity_id, { database });
  await enqueueCustomerAlertCheck(database, scope, { customer_id });
}
