/**
 * TIERED / SLAB: quantity fills the tiers in order. Each tier costs units in tier × unit_amount, plus its flat_amount
 * once if at least part of a unit falls in it. A quantity exactly at a boundary does not enter the next tier
 * (docs/rules/pricing.md, "Slab tiers").
 */

import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { type ChargePart, chargePart, type ModelTerms, type PricingModel } from './terms.ts';
import { checkTiers, isOpen, sortTiers, tiersText } from './tiers.ts';

export const tieredSlab = {
  billing_model: 'TIERED',
  tier_mode: 'SLAB',
  takes: ['tiers'],
  check: ({ tiers }) => checkTiers('tiers', tiers),
  parts: filledTiers,
  text: ({ tiers }) => tiersText('SLAB', tiers),
} as const satisfies PricingModel;

function filledTiers(price: ModelTerms, quantity: Decimal): ChargePart[] {
  const parts: ChargePart[] = [];
  let filled = ZERO;
  for (const [index, tier] of sortTiers(price.tiers ?? []).entries()) {
    const bound = isOpen(tier) ? quantity : Decimal.min(quantity, tier.up_to!);
    parts.push(chargePart(index, bound.minus(filled), tier));
    filled = bound;
    if (filled.eq(quantity)) return parts;
  }
  // Without an open last tier the excess would not be billed.
  throw invalid('tiers', 'the last tier must be open (up_to null)');
}
