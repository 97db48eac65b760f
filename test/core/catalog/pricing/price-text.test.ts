// A price in one cell of a table.
import { expect } from 'chai';
import { type PriceTerms, priceText } from '../../../../core/catalog/pricing/charge.ts';

const CASES: [said: string, price: Omit<PriceTerms, 'currency'>][] = [
  ['0.00000005', { billing_model: 'FLAT_FEE', amount: '5e-8' }],
  ['1.5 per 1000', { billing_model: 'PACKAGE', amount: '1.50', transform_quantity: { divide_by: 1000, round: 'up' } }],
  [
    'SLAB: up to 10 1, above 0.5 and 3 once',
    {
      billing_model: 'TIERED',
      tier_mode: 'SLAB',
      tiers: [
        { up_to: 10, unit_amount: '1', flat_amount: '0' },
        { up_to: null, unit_amount: '0.5', flat_amount: '3' },
      ],
    },
  ],
  ['VOLUME: above 2', { billing_model: 'TIERED', tier_mode: 'VOLUME', tiers: [{ up_to: null, unit_amount: '2' }] }],
];

describe('the text of a price', () => {
  for (const [said, price] of CASES) it(said, () => expect(priceText({ ...price, currency: 'usd' })).to.equal(said));
});
