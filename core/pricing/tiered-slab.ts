/**
 * TIERED / SLAB: fill tiers in order; each tier: units in tier × unit_amount, plus its flat_amount once if at least part of
 * a unit falls in it. A quantity exactly at a boundary does not enter the next tier (docs/rules/pricing.md, "Slab tiers").
 */

import { Decimal, ZERO } from '../decimal.ts';
import { invalid } from '../error.ts';
import { inTierOrder } from '../price/record.ts';
import { type ChargePart, chargePart, type PriceTerms } from './terms.ts';

export function tieredSlab(price: PriceTerms, quantity: Decimal): ChargePart[] {
  const parts: ChargePart[] = [];
  let filled = ZERO;
  for (const [index, tier] of inTierOrder(price.tiers ?? []).entries()) {
    const bound = tier.up_to === null || tier.up_to === undefined ? quantity : Decimal.min(quantity, tier.up_to);
    parts.push(chargePart(index, bound.minus(filled), tier));
    filled = bound;
    if (filled.eq(quantity)) return parts;
  }
  // Without an open last tier the excess would not be billed at all.
  throw invalid('tiers', 'the last tier must be open (up_to null)');
}
