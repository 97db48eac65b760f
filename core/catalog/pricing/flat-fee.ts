/** FLAT_FEE: amount × quantity (docs/rules/pricing.md, "Flat fee"). */
import { amountText, checkAmount, requireAmount } from './amount.ts';
import { chargePart, type PricingModel } from './terms.ts';

export const flatFee = {
  billing_model: 'FLAT_FEE',
  tier_mode: null,
  takes: ['amount'],
  check: checkAmount,
  parts: (price, quantity) => [chargePart(null, quantity, { unit_amount: requireAmount(price, 'FLAT_FEE') })],
  text: ({ amount }) => amountText(amount),
} as const satisfies PricingModel;
