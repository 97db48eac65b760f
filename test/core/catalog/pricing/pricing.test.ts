import { expect } from 'chai';
import fc from 'fast-check';
import { billedQuantity, chargeParts, type PriceTerms } from '../../../../core/catalog/pricing/charge.ts';
import type { TierTerms } from '../../../../core/catalog/pricing/terms.ts';
import { Decimal, type DecimalInput, sumDecimals, ZERO } from '../../../../core/foundation/decimal.ts';

const flat: PriceTerms = { billing_model: 'FLAT_FEE', currency: 'usd', amount: '0.015' };
const packs = (round: 'up' | 'down' | null, divide_by = 3): PriceTerms => ({
  billing_model: 'PACKAGE',
  currency: 'usd',
  amount: '2',
  transform_quantity: { divide_by, round },
});
const tiered = (tier_mode: 'VOLUME' | 'SLAB', tiers: TierTerms[]): PriceTerms => ({
  billing_model: 'TIERED',
  currency: 'usd',
  tier_mode,
  tiers,
});
const TIERS: TierTerms[] = [
  { up_to: 10, unit_amount: '2', flat_amount: '5' },
  { up_to: '20', unit_amount: '1', flat_amount: '7' },
  { up_to: null, unit_amount: '0.5' },
];

/** What a line of this quantity costs before it is rounded. */
function cost(price: PriceTerms, quantity: DecimalInput): Decimal {
  return sumDecimals(chargeParts(price, quantity).map((part) => part.amount));
}

describe('what a quantity costs', () => {
  const rows: [string, PriceTerms, string, string][] = [
    ['flat fee', flat, '3.5', '0.0525'],
    ['package, exactly one', packs('up'), '3', '2'],
    ['package, a sliver more', packs('up'), '3.000000000000000000000000000000000000000000000000001', '4'],
    ['package, a sliver less', packs('up'), '2.999999999999999999999999999999999999999999999999999', '2'],
    ['package, down, a sliver less', packs('down'), '2.999999999999999999999999999999999999999999999999999', '0'],
    ['package, up is the default', packs(null), '0.1', '2'],
    ['package, a number of packages beyond 2^53', packs('up', 1), '9007199254740993', '18014398509481986'],
    ['volume, in the first tier', tiered('VOLUME', TIERS), '0.5', '6'],
    ['volume, at the boundary', tiered('VOLUME', TIERS), '10', '25'],
    ['volume, a sliver beyond it', tiered('VOLUME', TIERS), '10.000001', '17.000001'],
    ['volume, beyond all', tiered('VOLUME', TIERS), '30', '15'],
    ['slab, at the boundary', tiered('SLAB', TIERS), '10', '25'],
    ['slab, a sliver beyond it: the next flat amount', tiered('SLAB', TIERS), '10.000001', '32.000001'],
    ['slab, at the second boundary', tiered('SLAB', TIERS), '20', '42'],
    ['slab, in the open tier', tiered('SLAB', TIERS), '21', '42.5'],
    ['slab, tiers given out of order', tiered('SLAB', [TIERS[2]!, TIERS[1]!, TIERS[0]!]), '21', '42.5'],
    [
      'slab, order by number and not by text',
      tiered('SLAB', [{ up_to: '9', unit_amount: '1' }, { up_to: '10', unit_amount: '5' }, { unit_amount: '0' }]),
      '11',
      '14',
    ],
    ['slab, one open tier', tiered('SLAB', [{ unit_amount: '3' }]), '1.5', '4.5'],
    [
      'slab, digits beyond 2^53',
      tiered('SLAB', [{ unit_amount: '0.000000000000000001' }]),
      '9007199254740993.25',
      '0.00900719925474099325',
    ],
  ];
  for (const [name, price, quantity, amount] of rows)
    it(`${name}: ${quantity} costs ${amount}`, () => expect(cost(price, quantity).toFixed()).to.equal(amount));

  for (const price of [flat, packs('up'), tiered('VOLUME', TIERS), tiered('SLAB', TIERS)])
    it(`0 costs 0 with ${price.billing_model} ${price.tier_mode ?? ''}, and a negative quantity is refused`, () => {
      expect(cost(price, '0').toFixed()).to.equal('0');
      expect(cost(price, '-0').toFixed()).to.equal('0');
      expect(() => cost(price, '-1')).to.throw('quantity');
    });

  const broken: [string, PriceTerms][] = [
    ['amount', { billing_model: 'FLAT_FEE', currency: 'usd' }],
    ['amount', { ...packs('up'), amount: null }],
    ['transform_quantity', { billing_model: 'PACKAGE', currency: 'usd', amount: '1' }],
    ['transform_quantity.divide_by', packs('up', 0)],
    ['tier_mode', { billing_model: 'TIERED', currency: 'usd', tiers: TIERS }],
    ['tiers', tiered('SLAB', [])],
    ['tiers', tiered('VOLUME', [])],
    ['tiers', tiered('SLAB', [{ up_to: 5, unit_amount: '1' }])],
    ['billing_model', { billing_model: 'PER_SEAT' as 'FLAT_FEE', currency: 'usd' }],
  ];
  for (const [field, price] of broken)
    it(`${JSON.stringify(price)} is an error of ${field}, never a price of 0`, () => {
      expect(() => cost(price, '6'))
        .to.throw()
        .with.nested.property('details.field', field);
    });
});

describe('charges', () => {
  it('of a period bill a negative quantity as 0', () => {
    expect(billedQuantity('-3').toFixed()).to.equal('0');
    expect(billedQuantity('3.5').toFixed()).to.equal('3.5');
  });

  it('are explained by their parts', () => {
    const parts = chargeParts(tiered('SLAB', TIERS), '12').map((part) => ({
      tier: part.tier,
      units: part.units.toFixed(),
      amount: part.amount.toFixed(),
    }));
    expect(parts).to.deep.equal([
      { tier: 0, units: '10', amount: '25' },
      { tier: 1, units: '2', amount: '9' },
    ]);
  });
});

const decimals = (max: number) =>
  fc.tuple(fc.integer({ min: 0, max }), fc.integer({ min: 0, max: 6 })).map(([n, p]) => new Decimal(n).div(10 ** p));
const tierLists = fc
  .tuple(
    fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 5 }),
    fc.array(fc.record({ unit_amount: decimals(1000), flat_amount: fc.option(decimals(1000)) }), {
      minLength: 6,
      maxLength: 6,
    }),
  )
  .map(([bounds, rates]): TierTerms[] => [...bounds, null].map((up_to, index) => ({ up_to, ...rates[index]! })));

describe('tiers cover every quantity once', () => {
  it('SLAB: the units of the parts add up to the quantity, none negative', () => {
    fc.assert(
      fc.property(tierLists, decimals(100_000_000), (tiers, quantity) => {
        const parts = chargeParts(tiered('SLAB', tiers), quantity);
        expect(sumDecimals(parts.map((part) => part.units)).eq(quantity)).to.equal(true);
        expect(parts.every((part) => part.units.gt(0))).to.equal(true);
      }),
    );
  });

  it('SLAB: the total equals unit by unit, each at the price of the tier it falls in, plus the flats of tiers entered', () => {
    fc.assert(
      fc.property(tierLists, fc.integer({ min: 0, max: 80 }), (tiers, quantity) => {
        const ordered = [...tiers].sort((a, b) => Number(a.up_to ?? 1e9) - Number(b.up_to ?? 1e9));
        let expected = ZERO;
        const entered = new Set<TierTerms>();
        for (let unit = 1; unit <= quantity; unit++) {
          const tier = ordered.find(({ up_to }) => up_to === null || unit <= Number(up_to))!;
          expected = expected.plus(tier.unit_amount);
          if (!entered.has(tier)) expected = expected.plus(tier.flat_amount ?? 0);
          entered.add(tier);
        }
        expect(cost(tiered('SLAB', tiers), String(quantity)).toFixed()).to.equal(expected.toFixed());
      }),
    );
  });

  it('SLAB and FLAT_FEE and PACKAGE: more never costs less', () => {
    const prices = fc.oneof(
      tierLists.map((tiers) => tiered('SLAB', tiers)),
      decimals(1000).map((amount): PriceTerms => ({ ...flat, amount })),
      fc
        .tuple(fc.constantFrom('up', 'down', null), fc.integer({ min: 1, max: 40 }))
        .map(([round, by]) => packs(round, by)),
    );
    fc.assert(
      fc.property(prices, decimals(100_000), decimals(100_000), (price, quantity, more) => {
        expect(cost(price, quantity.plus(more)).gte(cost(price, quantity))).to.equal(true);
      }),
    );
  });

  it('VOLUME: the whole quantity falls in one tier, the one that holds it', () => {
    fc.assert(
      fc.property(tierLists, decimals(100_000_000), (tiers, quantity) => {
        if (quantity.isZero()) return;
        const [part, ...rest] = chargeParts(tiered('VOLUME', tiers), quantity);
        const bounds = tiers.map(({ up_to }) => up_to).filter((up_to) => up_to !== null);
        expect(rest).to.be.empty;
        expect(part?.units.eq(quantity)).to.equal(true);
        expect(part?.tier).to.equal(bounds.filter((up_to) => quantity.gt(up_to!)).length);
      }),
    );
  });

  it('PACKAGE: the packages just hold the quantity, or are just held by it', () => {
    fc.assert(
      fc.property(decimals(100_000_000), fc.integer({ min: 1, max: 1000 }), (quantity, by) => {
        const up = cost({ ...packs('up', by), amount: '1' }, quantity);
        const down = cost({ ...packs('down', by), amount: '1' }, quantity);
        expect(up.isInteger() && up.times(by).gte(quantity) && up.minus(1).times(by).lt(quantity)).to.equal(true);
        expect(down.isInteger() && down.times(by).lte(quantity) && down.plus(1).times(by).gt(quantity)).to.equal(true);
      }),
    );
  });
});
