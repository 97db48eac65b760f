/**
 * TIERED / VOLUME: the first tier with quantity ≤ up_to (else the last) prices the whole quantity: quantity × unit_amount
 * + flat_amount of that tier only. Boundaries are inclusive (docs/rules/pricing.md, "Volume tiers").
 */

import type { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { type ChargePart, chargePart, type ModelTerms, type PricingModel } from './terms.ts';
import { checkTiers, isOpen, sortTiers, tiersText } from './tiers.ts';

export const tieredVolume = {
  billing_model: 'TIERED',
  tier_mode: 'VOLUME',
  takes: ['tiers'],
  check: ({ tiers }) => checkTiers('tiers', tiers),
  parts: tierThatHolds,
  text: ({ tiers }) => tiersText('VOLUME', tiers),
} as const satisfies PricingModel;

function tierThatHolds(price: ModelTerms, quantity: Decimal): ChargePart[] {
  const tiers = sortTiers(price.tiers ?? []);
  const fits = tiers.findIndex((tier) => isOpen(tier) || quantity.lte(tier.up_to!));
  const index = fits === -1 ? tiers.length - 1 : fits;
  const tier = tiers[index];
  if (tier === undefined) throw invalid('tiers', 'needs at least one tier for TIERED');
  return [chargePart(index, quantity, tier)];
}
