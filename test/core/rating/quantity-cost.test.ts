/** The cost of a quantity without a subscription is the amount of an invoice line (docs/rules/pricing.md, "Cost of a quantity"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { defineCharge } from '../../../core/catalog/price/define.ts';
import { type ChargeDefinition, createPriceShape } from '../../../core/catalog/price/record.ts';
import { timeBucketsShape } from '../../../core/catalog/price/time-buckets.ts';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { priceFixedCharge, priceUsageCharge } from '../../../core/rating/line-amount.ts';
import { computeQuantityCosts } from '../../../core/rating/quantity-cost.ts';
import { JANUARY, usageItem } from '../../examples/january.ts';
import { samples } from '../../support/samples.ts';

const requested = createPriceShape.partial({
  entity_type: true,
  entity_id: true,
  billing_period: true,
  invoice_cadence: true,
});
const defined = (fields: object): ChargeDefinition =>
  defineCharge(requested.parse({ type: 'USAGE', currency: 'usd', billing_model: 'FLAT_FEE', ...fields }));
const TIERS = [
  { up_to: 5000, unit_amount: '0.08' },
  { up_to: 1000, unit_amount: '0.10' },
  { unit_amount: '0.05', flat_amount: '20' },
];

function computeOne(quantity: string, price: ChargeDefinition) {
  const [{ lines, ...cost }] = computeQuantityCosts([quantity], { price, window: null }) as [
    ReturnType<typeof computeQuantityCosts>[number],
  ];
  const shown = lines.map(({ from, up_to, quantity: units, flat_amount, amount }) =>
    [from, up_to, units.toFixed(), flat_amount?.toFixed() ?? null, amount.toFixed()].join(' '),
  );
  return { amount: cost.amount.toFixed(), rounded: cost.amount_rounded.toFixed(), lines: shown };
}

describe('cost of a quantity', () => {
  const rows: [string, object, string, ReturnType<typeof computeOne>][] = [
    ['a flat fee, half a cent', { amount: '0.005' }, '1', { amount: '0.005', rounded: '0.01', lines: ['0  1  0.005'] }],
    [
      'nothing',
      { billing_model: 'TIERED', tier_mode: 'SLAB', tiers: TIERS },
      '0',
      { amount: '0', rounded: '0', lines: [] },
    ],
    [
      'slabs, given out of order',
      { billing_model: 'TIERED', tier_mode: 'SLAB', tiers: TIERS },
      '6000',
      {
        amount: '490',
        rounded: '490',
        lines: ['0 1000 1000  100', '1000 5000 4000  320', '5000  1000 20 70'],
      },
    ],
    [
      'volume',
      { billing_model: 'TIERED', tier_mode: 'VOLUME', tiers: TIERS },
      '1001',
      { amount: '80.08', rounded: '80.08', lines: ['1000 5000 1001  80.08'] },
    ],
    [
      'packages',
      { billing_model: 'PACKAGE', amount: '5', transform_quantity: { divide_by: 100 } },
      '250',
      { amount: '15', rounded: '15', lines: ['0  3  15'] },
    ],
    [
      'a currency without decimals',
      { currency: 'JPY', amount: '1.5' },
      '3',
      { amount: '4.5', rounded: '5', lines: ['0  3  4.5'] },
    ],
  ];
  for (const [name, fields, quantity, cost] of rows)
    it(name, () => expect(computeOne(quantity, defined(fields))).to.deep.equal(cost));

  it('refuses a negative quantity, and one below the minimum, by its index', () => {
    const faults: [object, string][] = [
      [{ amount: '1' }, '-1'],
      [{ type: 'FIXED', amount: '1', min_quantity: '5' }, '4'],
    ];
    for (const [fields, quantity] of faults)
      expect(() => computeQuantityCosts(['9', quantity], { price: defined(fields), window: null }))
        .to.throw()
        .with.nested.property('details.field', 'quantities[1]');
  });

  it('applies the commitment of the time of day', () => {
    const time_buckets = timeBucketsShape.parse([
      {
        id: 'day',
        start: { hour: 9 },
        end: { hour: 17 },
        price: { billing_model: 'FLAT_FEE', amount: '2' },
        commitment_value: '100',
        overage_factor: '1.5',
        true_up_enabled: true,
      },
    ]);
    const price = defined({ amount: '1' });
    const charge = (quantity: string, at: string) => {
      const window = { at: Date.parse(at), size: 'HOUR' as const, time_buckets };
      return computeQuantityCosts([quantity], { price, window })[0]!.amount.toFixed();
    };
    // By day 20 units are 40, of a commitment of 100; 60 units are 120, of which 20 cost half more. By night the own price applies.
    expect(charge('20', '2026-01-01T09:30:00Z')).to.equal('100');
    expect(charge('60', '2026-01-01T16:59:00Z')).to.equal('130');
    expect(charge('60', '2026-01-01T17:00:00Z')).to.equal('60');
  });

  const decimals = (most: number, places: number) =>
    fc.integer({ min: 0, max: most }).map((n) => new Decimal(n).div(new Decimal(10).pow(places)).toFixed());
  const tiers = fc
    .uniqueArray(fc.integer({ min: 1, max: 5000 }), { maxLength: 4 })
    .chain((bounds) =>
      fc.tuple(
        fc.constant([...bounds, null]),
        fc.array(fc.tuple(decimals(10_000, 5), fc.option(decimals(10_000, 3))), { minLength: 5, maxLength: 5 }),
      ),
    )
    .map(([bounds, rates]) =>
      bounds.map((up_to, index) => ({ up_to, unit_amount: rates[index]![0], flat_amount: rates[index]![1] })),
    );
  const anyPrice = fc
    .tuple(
      fc.oneof(
        fc.record({ billing_model: fc.constant('FLAT_FEE'), amount: decimals(1_000_000, 6) }),
        fc.record({
          billing_model: fc.constant('PACKAGE'),
          amount: decimals(100_000, 3),
          transform_quantity: fc.record({
            divide_by: fc.integer({ min: 1, max: 1000 }),
            round: fc.constantFrom('up', 'down'),
          }),
        }),
        fc.record({ billing_model: fc.constant('TIERED'), tier_mode: fc.constantFrom('SLAB', 'VOLUME'), tiers }),
      ),
      fc.constantFrom('usd', 'jpy', 'kwd'),
    )
    .map(([fields, currency]) => ({ ...fields, currency }));

  it('equals a usage line and a fixed line, and is the sum of its lines', () => {
    const quantities = fc.array(decimals(9_000_000, 3), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(anyPrice, quantities, (fields, drawn) => {
        const price = defined(fields);
        for (const cost of computeQuantityCosts(drawn, { price, window: null })) {
          const quantity = new Decimal(cost.quantity);
          const measured = { quantity, buckets: null, event_count: 1, as_of: '', high_water: {}, meter_version: 1 };
          const item = usageItem(price, { quantity });
          const { currency } = price;
          const lines = [
            priceUsageCharge(item, JANUARY, { measured, currency }),
            priceFixedCharge(item, { part_ms: 1, whole_ms: 1 }, currency),
          ];
          for (const { amount, exact } of lines)
            expect([cost.amount_rounded.toFixed(), cost.amount.toFixed()]).to.deep.equal([
              amount.toFixed(),
              exact!.toFixed(),
            ]);
          expect(sumDecimals(cost.lines.map((line) => line.amount)).toFixed()).to.equal(cost.amount.toFixed());
        }
      }),
      { numRuns: samples(500) },
    );
  });
});

describe('costs of many quantities under many tiers', () => {
  const priceWithTiers = (count: number) => {
    const tiers = Array.from({ length: count }, (_, index) => ({
      up_to: index === count - 1 ? undefined : (index + 1) * 10,
      unit_amount: '0.01',
    }));
    return defined({ billing_model: 'TIERED', tier_mode: 'SLAB', tiers });
  };
  const compute = (quantity_count: number, price: ChargeDefinition) =>
    computeQuantityCosts(Array<string>(quantity_count).fill('40000'), { price, window: null });

  it('take time in proportion to their lines', () => {
    const costs = compute(10, priceWithTiers(2_000));
    expect(costs).to.have.length(10);
    expect([costs[9]!.lines.length, costs[9]!.amount.toFixed()]).to.deep.equal([2_000, '400']);
  });

  it('are refused if the answer had too many lines', () => {
    expect(() => compute(11, priceWithTiers(2_000)))
      .to.throw('must not have more than 10 entries for a price with 2000 tiers')
      .with.nested.property('details.field', 'quantities');
  });
});
