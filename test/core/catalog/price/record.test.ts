import { expect } from 'chai';
import { definePrice, type PriceUnitTerms } from '../../../../core/catalog/price/define.ts';
import { checkPrice, createPriceShape, priceShape } from '../../../../core/catalog/price/record.ts';
import { sortTiers } from '../../../../core/catalog/pricing/tiers.ts';

const FIXED = {
  amount: '12.50',
  currency: 'USD',
  entity_type: 'PLAN',
  entity_id: 'plan_1',
  type: 'FIXED',
  billing_model: 'FLAT_FEE',
  billing_period: 'MONTHLY',
  invoice_cadence: 'ADVANCE',
};
const USAGE = { ...FIXED, type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: 'meter_1' };
const TIERED = {
  ...USAGE,
  amount: undefined,
  billing_model: 'TIERED',
  tier_mode: 'SLAB',
  tiers: [{ unit_amount: '1' }, { up_to: 10, unit_amount: '2', flat_amount: '3' }],
};
const ONETIME = { ...FIXED, billing_period: 'ONETIME' };
const CREDITS: PriceUnitTerms = {
  id: 'price_unit_1',
  code: 'crd',
  symbol: '◎',
  base_currency: 'usd',
  conversion_rate: '0.0125',
};
const CUSTOM = {
  ...USAGE,
  amount: undefined,
  price_unit_type: 'CUSTOM',
  price_unit_config: { price_unit: 'crd', amount: '3' },
};

const define = (request: object, unit?: PriceUnitTerms) => definePrice(createPriceShape.parse(request), unit);

describe('a price', () => {
  const accepted: [string, object][] = [
    ['FIXED', FIXED],
    ['USAGE', USAGE],
    ['free of charge', { ...FIXED, amount: 0 }],
    ['FIXED in arrears', { ...FIXED, invoice_cadence: 'arrear' }],
    ['ONETIME, the count is not checked', { ...ONETIME, billing_period_count: 0 }],
    ['a trial', { ...FIXED, trial_period_days: 14 }],
    ['no trial on USAGE', { ...USAGE, trial_period: 0 }],
    ['min_quantity', { ...FIXED, min_quantity: 3 }],
    ['PACKAGE', { ...USAGE, billing_model: 'PACKAGE', transform_quantity: { divide_by: 1 } }],
    ['TIERED', TIERED],
    ['one open tier', { ...TIERED, tiers: [{ up_to: null, unit_amount: '0' }] }],
    ['up_to as text', { ...TIERED, tiers: [{ up_to: '9', unit_amount: '0' }, { unit_amount: '0' }] }],
    ['starting as it ends', { ...FIXED, start_date: '2024-01-01T00:00:00Z', end_date: '2024-01-01T01:00:00+01:00' }],
    ['empty filter values', { ...USAGE, filter_values: {} }],
  ];
  for (const [name, request] of accepted) it(`accepts ${name}`, () => expect(() => define(request)).not.to.throw());

  const tiers = (...list: object[]) => ({ ...TIERED, tiers: list });
  const open = { unit_amount: '1' };
  const refused: [string, string, object][] = [
    ['currency', 'unknown', { ...FIXED, currency: 'zzz' }],
    ['invoice_cadence', 'USAGE in advance', { ...USAGE, invoice_cadence: 'ADVANCE' }],
    ['meter_id', 'USAGE without a meter', { ...USAGE, meter_id: '' }],
    ['min_quantity', 'on USAGE', { ...USAGE, min_quantity: '0' }],
    ['min_quantity', 'negative', { ...FIXED, min_quantity: '-1' }],
    ['trial_period_days', 'on USAGE', { ...USAGE, trial_period: 7 }],
    ['trial_period_days', 'on ONETIME', { ...ONETIME, trial_period_days: 7 }],
    ['trial_period_days', 'negative', { ...FIXED, trial_period_days: -1 }],
    ['type', 'ONETIME usage', { ...USAGE, billing_period: 'ONETIME' }],
    ['invoice_cadence', 'ONETIME in arrears', { ...ONETIME, invoice_cadence: 'ARREAR' }],
    ['billing_period_count', '0', { ...FIXED, billing_period_count: 0 }],
    ['billing_period_count', 'negative', { ...FIXED, billing_period_count: -3 }],
    ['amount', 'missing', { ...FIXED, amount: null }],
    ['amount', 'missing for PACKAGE', { ...FIXED, amount: '', billing_model: 'PACKAGE' }],
    ['amount', 'negative', { ...FIXED, amount: '-0.01' }],
    ['transform_quantity', 'missing', { ...FIXED, billing_model: 'PACKAGE' }],
    ['transform_quantity.divide_by', '0', { ...FIXED, billing_model: 'PACKAGE', transform_quantity: { divide_by: 0 } }],
    ['tiers', 'missing', { ...TIERED, tiers: null }],
    ['tiers', 'empty', { ...TIERED, tiers: [] }],
    ['tier_mode', 'missing', { ...TIERED, tier_mode: null }],
    ['tiers[0].up_to', 'no open tier', tiers({ up_to: 5, unit_amount: '1' })],
    ['tiers[0].up_to', 'two open tiers', tiers(open, open)],
    ['tiers[0].up_to', '0', tiers({ up_to: 0, unit_amount: '1' }, open)],
    ['tiers[0].up_to', 'negative', tiers({ up_to: -5, unit_amount: '1' }, open)],
    ['tiers[1].up_to', 'twice the same', tiers({ up_to: 5, unit_amount: '1' }, { up_to: 5, unit_amount: '1' }, open)],
    ['tiers[0].unit_amount', 'negative', tiers({ unit_amount: '-1' })],
    ['tiers[0].flat_amount', 'negative', tiers({ unit_amount: '1', flat_amount: '-1' })],
    [
      'end_date',
      'before the start',
      { ...FIXED, start_date: '2024-01-02T00:00:00Z', end_date: '2024-01-01T00:00:00Z' },
    ],
    ['price_unit_config', 'with FIAT', { ...FIXED, price_unit_config: { price_unit: 'crd', amount: '1' } }],
    ['price_unit_config', 'missing with CUSTOM', { ...CUSTOM, price_unit_config: null }],
    ['price_unit_config.price_unit', 'unknown', CUSTOM],
    ['amount', 'with CUSTOM', { ...CUSTOM, amount: '5' }],
    ['tiers', 'with CUSTOM', { ...CUSTOM, tiers: [open] }],
    ['filter_values', 'not supported', { ...USAGE, filter_values: { region: ['eu'] } }],
  ];
  for (const [field, name, request] of refused)
    it(`refuses ${field}: ${name}`, () => {
      expect(() => define(request))
        .to.throw()
        .that.satisfies((error: { code?: string; details?: { field?: string } }) => {
          return error.code === 'validation_error' && error.details?.field === field;
        }, `a validation error of ${field}`);
    });

  for (const request of [
    { ...FIXED, billing_cadence: 'ONETIME' },
    { ...FIXED, billing_model: 'PER_SEAT' },
    { ...FIXED, billing_period_count: 1.5 },
    { ...FIXED, currency: undefined },
    { ...TIERED, tiers: [{ up_to: 1.5, unit_amount: '1' }, { unit_amount: '1' }] },
  ])
    it(`has no shape for ${JSON.stringify(request)}`, () => {
      expect(createPriceShape.safeParse(request).success).to.equal(false);
    });
});

describe('a price as it is defined', () => {
  it('has its defaults, its currency in lower case, its amount shown, and every key of the record', () => {
    const price = define({ ...FIXED, trial_period: 14 });
    expect(price).to.deep.include({
      amount: '12.5',
      display_amount: '$12.50',
      currency: 'usd',
      billing_period_count: 1,
      billing_cadence: 'RECURRING',
      price_unit_type: 'FIAT',
      trial_period_days: 14,
      parent_price_id: '',
      tiers: null,
      metadata: null,
    });
    const stored = { id: 'price_1', sequence: 1, tenant_id: 't', environment_id: 'e', status: 'published' };
    const audit = {
      created_at: '2024-01-01T00:00:00Z',
      updated_at: '2024-01-01T00:00:00Z',
      created_by: 'u',
      updated_by: 'u',
    };
    const record = priceShape.parse({ ...stored, ...audit, ...price });
    expect(record).to.deep.include(price);
    expect(Object.keys(record).sort()).to.deep.equal(Object.keys(priceShape.shape).sort());
    expect(Object.values(record)).not.to.include(undefined);
  });

  it('has its tiers in order, the open one last, and an amount of 0', () => {
    const price = define(TIERED);
    expect(price.tiers).to.deep.equal([
      { up_to: 10, unit_amount: '2', flat_amount: '3' },
      { up_to: null, unit_amount: '1', flat_amount: null },
    ]);
    expect(price.amount).to.equal('0');
    expect(sortTiers([{ up_to: '10' }, {}, { up_to: 9 }])).to.deep.equal([{ up_to: 9 }, { up_to: '10' }, {}]);
  });

  it('rounds packages up unless told otherwise', () => {
    const price = define({ ...USAGE, billing_model: 'PACKAGE', transform_quantity: { divide_by: 10, round: '' } });
    expect(price.transform_quantity).to.deep.equal({ divide_by: 10, round: 'up' });
  });

  it('of a custom unit keeps the unit, its rate, and the mirror in money, not rounded', () => {
    expect(define(CUSTOM, CREDITS)).to.deep.include({
      amount: '0.0375',
      display_amount: '$0.0375',
      price_unit: 'crd',
      price_unit_id: 'price_unit_1',
      price_unit_amount: '3',
      display_price_unit_amount: '◎3',
      conversion_rate: '0.0125',
    });
    const config = {
      price_unit: 'crd',
      price_unit_tiers: [{ unit_amount: '2' }, { up_to: 4, unit_amount: '4', flat_amount: '8' }],
    };
    const price = define({ ...TIERED, tiers: null, price_unit_type: 'custom', price_unit_config: config }, CREDITS);
    expect(price.tiers).to.deep.equal([
      { up_to: 4, unit_amount: '0.05', flat_amount: '0.1' },
      { up_to: null, unit_amount: '0.025', flat_amount: null },
    ]);
    expect(price.price_unit_tiers?.[0]?.unit_amount).to.equal('4');
  });

  it('of a custom unit must be in its base currency, and in digits that an amount has', () => {
    expect(() => define({ ...CUSTOM, currency: 'eur' }, CREDITS)).to.throw('currency:');
    expect(() => define(CUSTOM, { ...CREDITS, conversion_rate: '0.0000000000000000001' })).to.throw(
      'price_unit_config.amount:',
    );
    expect(() => define({ ...CUSTOM, billing_model: 'TIERED', tier_mode: 'SLAB' }, CREDITS)).to.throw('tiers:');
  });

  it('is checked again after an override', () => {
    const price = define(FIXED);
    expect(() => checkPrice({ ...price, amount: '-1' })).to.throw('amount:');
    expect(() => checkPrice({ ...price, price_unit: 'crd' })).to.throw('price_unit_type:');
    expect(() => checkPrice({ ...price, price_unit_type: 'CUSTOM' })).to.throw('price_unit_config:');
    expect(() => checkPrice(price)).not.to.throw();
  });
});
