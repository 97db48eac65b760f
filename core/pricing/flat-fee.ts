/** FLAT_FEE: amount × quantity (docs/rules/pricing.md, "Flat fee"). */
import type { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import { type ChargePart, chargePart, type PriceTerms } from './terms.ts';

export function flatFee(price: PriceTerms, quantity: Decimal): ChargePart[] {
  if (price.amount === null || price.amount === undefined) throw invalid('amount', 'is required for FLAT_FEE');
  return [chargePart(null, quantity, { unit_amount: price.amount })];
}
