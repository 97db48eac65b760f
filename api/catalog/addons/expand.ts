/** Builds the answers of add-ons, with the records that `expand` names. */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import type { Context } from '../../http/route.ts';
import { loadEntitlementsByEntity } from '../entitlements/expand.ts';
import { showPrices } from '../prices/expand.ts';

/** Records in the answer of a single add-on. */
const EVERY_PART = ['prices', 'prices.meters', 'entitlements', 'credit_grant'];

export async function showAddons(addons: readonly AddonModel[], expand: readonly string[], context: Context) {
  const asks = (part: string) => expand.some((path) => path === part || path.startsWith(`${part}.`));
  const ids = addons.map(({ id }) => id);
  const withMeters = expand.includes('prices.meters') || expand.includes('meters');
  const prices = asks('prices') ? await loadPricesByAddon(ids, withMeters ? ['meters'] : [], context) : null;
  const withFeatures = expand.includes('entitlements.features') ? ['features'] : [];
  const entitlements = asks('entitlements') ? await loadEntitlementsByEntity(ids, withFeatures, context) : null;
  const { scope, services } = context;
  const grants = asks('credit_grant')
    ? await CreditGrantModel.buildPublishedQuery(scope, ['addon_id', ids], services.postgres)
    : null;
  return addons.map((addon) => ({
    ...addon,
    prices: prices && (prices.get(addon.id) ?? []),
    entitlements: entitlements && (entitlements.get(addon.id) ?? []),
    credit_grants: grants && grants.filter(({ addon_id }) => addon_id === addon.id),
  }));
}

export async function showAddon(addon: AddonModel, context: Context) {
  const [shown] = await showAddons([addon], EVERY_PART, context);
  return shown!;
}

async function loadPricesByAddon(ids: readonly string[], expand: readonly string[], context: Context) {
  const prices = await PriceModel.current(context.scope, context.now, context.services.postgres)
    .where('entity_type', 'ADDON')
    .whereIn('entity_id', [...ids])
    .orderBy(['created_at', 'sequence']);
  return groupBy(await showPrices(prices, expand, context), ({ entity_id }) => entity_id);
}
