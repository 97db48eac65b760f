/**
 * TIERED / VOLUME: find the first tier with quantity ≤ up_to (else the last); quantity × unit_amount + flat_amount of
 * *that* tier only. Boundaries are inclusive (docs/rules/pricing.md, "Volume tiers").
 */

import type { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { inTierOrder } from '../price/record.ts';
import { type ChargePart, chargePart, type PriceTerms } from './terms.ts';

export function tieredVolume(price: PriceTerms, quantity: Decimal): ChargePart[] {
  const tiers = inTierOrder(price.tiers ?? []);
  const fits = tiers.findIndex(({ up_to }) => up_to === null || up_to === undefined || quantity.lte(up_to));
  const index = fits === -1 ? tiers.length - 1 : fits;
  const tier = tiers[index];
  if (tier === undefined) throw invalid('tiers', 'needs at least one tier for TIERED');
  return [chargePart(index, quantity, tier)];
}
