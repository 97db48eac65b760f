/**
 * Archives an add-on with its prices and entitlements, which frees their lookup keys; refused while a subscription has it
 * (docs/rules/records.md, "Archiving").
 */

import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { archiveEntityEntitlements } from '../entitlements/archive-entitlements.ts';
import { archivePrices } from '../prices/archive-prices.ts';

export async function archiveAddon(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (database) => {
    const addon = await AddonModel.fetchPublished(scope, id, { database, lock: true });
    const living = SubscriptionModel.in(scope, database).select('id').whereNot('subscription_status', 'cancelled');
    const [attached] = await AddonAssociationModel.notEnded(scope, author.now, database)
      .where('addon_id', id)
      .whereIn('entity_id', living as never)
      .select('id')
      .limit(1);
    if (attached) throw notAllowed(`add-on ${id} is attached to a subscription`);
    await AddonModel.change(addon, { status: 'archived' }, { by: author, database });
    await archivePrices(scope, { entity_type: 'ADDON', entity_id: id }, { by: author, database });
    await archiveEntityEntitlements(scope, id, { by: author, database });
    await CreditGrantModel.archiveBySeller(scope, ['addon_id', id], { by: author, database });
  });
}
