import { expect } from 'chai';
import { isTable, parseTiers } from '../../console/pages/plans/parse-tiers.ts';
import {
  buildCharge,
  buildCostedPrice,
  buildPriceChange,
  buildPriceRequest,
  chooseModel,
  chooseType,
  createDraft,
  type EditedPrice,
  hasCharge,
  isChargeChanged,
  type PriceDraft,
  toDraft,
} from '../../console/pages/plans/price-draft.ts';
import {
  addScale,
  buildCurve,
  chooseScale,
  computeAverage,
  indexCosts,
  listCurveQuantities,
  listTierTotals,
  type PricedQuantity,
  scalePrice,
  subtractAmounts,
  suggestQuantity,
} from '../../console/pages/plans/price-figures.ts';

const STORED: EditedPrice = {
  type: 'USAGE',
  billing_model: 'TIERED',
  tier_mode: 'SLAB',
  meter_id: 'meter_1',
  display_name: 'Input tokens',
  currency: 'usd',
  amount: '0',
  tiers: [
    { up_to: 1000, unit_amount: '0.00003', flat_amount: null },
    { up_to: null, unit_amount: '0.00002', flat_amount: '5' },
  ],
  transform_quantity: null,
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  invoice_cadence: 'ARREAR',
  min_quantity: null,
  trial_period_days: 0,
  lookup_key: null,
};

const toTier = (up_to: string, unit_amount: string, flat_amount = '') => ({ up_to, unit_amount, flat_amount });

describe('tiers from a spreadsheet', () => {
  const cases: [string, string, 'en' | 'de', ReturnType<typeof toTier>[]][] = [
    ['bound and price', '1000\t3.00\n\t2', 'en', [toTier('1000', '3'), toTier('', '2')]],
    [
      'a header, groups and symbols',
      'Up to\tPrice\n1,000\t$3.00\n∞\tUSD 2',
      'en',
      [toTier('1000', '3'), toTier('', '2')],
    ],
    ['a decimal comma in German', '1.000\t3,00\n\t2,5', 'de', [toTier('1000', '3'), toTier('', '2.5')]],
    ['a flat fee', '10\t3\t20\n\t2\t–', 'en', [toTier('10', '3', '20'), toTier('', '2')]],
    [
      'the start of each tier',
      '0\t10\t3\n10\t20\t2\n20\t\t1',
      'en',
      [toTier('10', '3'), toTier('20', '2'), toTier('', '1')],
    ],
    ['starts that are one higher', '1\t10\t3\n11\t\t2', 'en', [toTier('10', '3'), toTier('', '2')]],
    ['start, bound, price and fee', '0\t10\t3\t5\n10\t\t2\t', 'en', [toTier('10', '3', '5'), toTier('', '2')]],
    ['rows that all have a bound', '10\t3\n20\t2', 'en', [toTier('10', '3'), toTier('20', '2'), toTier('', '')]],
    ['line ends of Windows and empty lines', '10\t3\r\n\r\n\t2\r\n', 'en', [toTier('10', '3'), toTier('', '2')]],
  ];
  for (const [name, text, language, tiers] of cases)
    it(`reads ${name}`, () =>
      expect(parseTiers(text, language)).to.deep.equal({ tiers, faults: [], isAmbiguous: false }));

  it('names the lines that it does not understand', () => {
    expect(parseTiers('10\t3\nten\tthree\n\t2', 'en').faults).to.deep.equal([2]);
    expect(parseTiers('10\t3\n\t2\n20\t1', 'en').faults).to.deep.equal([2]);
  });

  it('does not choose between two readings of a price', () => {
    const text = '1.000\t1.022\n\t1,5';
    expect(parseTiers(text, 'de').isAmbiguous).to.equal(true);
    expect(parseTiers(text, 'de', 'group').tiers[0]).to.deep.equal(toTier('1000', '1022'));
    expect(parseTiers(text, 'de', 'decimal').tiers[0]).to.deep.equal(toTier('1000', '1.022'));
    expect(parseTiers(text, 'de', 'decimal').isAmbiguous).to.equal(false);
  });

  it('knows a table from a number', () => {
    expect(isTable('1,000')).to.equal(false);
    expect(isTable('1,000\n')).to.equal(false);
    expect(isTable('1\t2')).to.equal(true);
  });
});

describe('the draft of a price', () => {
  it('sends what was stored if nothing is changed', () => {
    const draft = toDraft(STORED);
    expect(isChargeChanged(draft, STORED)).to.equal(false);
    expect(buildPriceChange(draft, STORED)).to.deep.equal({});
  });

  it('changes a name in place and the charge by a version', () => {
    const draft = { ...toDraft(STORED), display_name: 'Tokens', starts_at: '2030-01-01T00:00:00Z' };
    expect(buildPriceChange(draft, STORED)).to.deep.equal({ display_name: 'Tokens' });
    const dearer: PriceDraft = { ...draft, tiers: [toTier('', '0.1')] };
    expect(buildPriceChange(dearer, STORED)).to.deep.equal({
      billing_model: 'TIERED',
      tier_mode: 'SLAB',
      amount: null,
      tiers: [{ up_to: null, unit_amount: '0.1', flat_amount: null }],
      transform_quantity: null,
      effective_from: '2030-01-01T00:00:00Z',
      display_name: 'Tokens',
    });
  });

  it('makes a flat fee fixed, in advance and without a quantity', () => {
    const draft = chooseModel({ ...createDraft('eur'), amount: '49', meter_id: 'meter_1' }, 'flat');
    expect(buildPriceRequest(draft, 'plan_1')).to.include({
      type: 'FIXED',
      billing_model: 'FLAT_FEE',
      amount: '49',
      meter_id: null,
      min_quantity: null,
      invoice_cadence: 'ADVANCE',
      currency: 'eur',
      entity_id: 'plan_1',
    });
  });

  it('drops the terms of fixed fees when it turns to usage', () => {
    const fixed: PriceDraft = {
      ...chooseModel(createDraft('usd'), 'flat'),
      billing_period: 'ONETIME',
      trial_period_days: '14',
    };
    expect(buildPriceRequest(chooseType(fixed, 'USAGE'), 'plan_1')).to.include({
      type: 'USAGE',
      invoice_cadence: 'ARREAR',
      billing_period: 'MONTHLY',
      trial_period_days: null,
      min_quantity: null,
    });
  });

  it('prices a draft that has no meter yet', () => {
    expect(buildCostedPrice(createDraft('usd')).meter_id).to.equal('meter_draft');
  });

  it('has a charge when each of its fields is filled', () => {
    const draft = createDraft('usd');
    expect(hasCharge(draft)).to.equal(false);
    expect(hasCharge({ ...draft, tiers: [toTier('10', '1'), toTier('', '2')] })).to.equal(true);
    expect(hasCharge({ ...draft, tiers: [toTier('', '1'), toTier('', '2')] })).to.equal(false);
    expect(hasCharge({ ...draft, model: 'package', amount: '5' })).to.equal(false);
    expect(hasCharge({ ...draft, model: 'package', amount: '5', divide_by: '100' })).to.equal(true);
  });

  it('sends the mode of its tiers', () => {
    expect(buildCharge({ ...createDraft('usd'), model: 'volume' }).tier_mode).to.equal('VOLUME');
    expect(buildCharge({ ...createDraft('usd'), model: 'per_unit', amount: '2' })).to.deep.equal({
      billing_model: 'FLAT_FEE',
      tier_mode: null,
      amount: '2',
      tiers: null,
      transform_quantity: null,
    });
  });
});

describe('the figures of the price editor', () => {
  const draft = toDraft(STORED);

  it('shows and reads prices in another scale exactly', () => {
    expect(scalePrice('0.000010223', 6)).to.equal('10.223');
    expect(scalePrice('10.223', -6)).to.equal('0.000010223');
    expect(scalePrice('', 6)).to.equal('');
    expect(addScale('9007199254740993', 6)).to.equal('9007199255740993');
    expect(subtractAmounts('0.3', '0.1')).to.equal('0.2');
  });

  it('chooses the scale in which the least price can be read', () => {
    const perUnit = (amount: string): PriceDraft => ({ ...draft, model: 'per_unit', amount });
    expect([perUnit('8'), perUnit('0.01'), perUnit('0.00188'), perUnit('0.00001')].map(chooseScale)).to.deep.equal([
      0, 0, 3, 6,
    ]);
    expect(chooseScale(draft)).to.equal(6);
  });

  it('suggests a quantity in the last tier', () => {
    expect(suggestQuantity(draft)).to.equal('1200');
  });

  it('asks for both sides of each bound, in order and each once', () => {
    const quantities = listCurveQuantities(draft, '1200');
    expect(quantities).to.include.members(['0', '1', '1000', '1001', '1380']);
    expect(new Set(quantities).size).to.equal(quantities.length);
    expect(quantities.map(Number)).to.deep.equal(quantities.map(Number).sort((a, b) => a - b));
  });

  it('asks for no quantity below the least one, and for few of many packages', () => {
    const seats: PriceDraft = { ...draft, type: 'FIXED', model: 'per_unit', amount: '5', min_quantity: '3' };
    expect(
      listCurveQuantities(seats, '10')
        .map(Number)
        .every((quantity) => quantity >= 3),
    ).to.equal(true);
    const packages: PriceDraft = { ...draft, model: 'package', amount: '5', divide_by: '1' };
    expect(listCurveQuantities(packages, '1000000').length).to.be.below(100);
    expect(listCurveQuantities({ ...packages, divide_by: '100' }, '250')).to.include.members([
      '100',
      '101',
      '200',
      '201',
    ]);
  });

  it('has the cost of each tier, and marks the ends on the curve', () => {
    const toCost = (quantity: string, amounts: string[]): PricedQuantity => ({
      quantity,
      amount: '106',
      amount_rounded: '106',
      lines: amounts.map((amount) => ({
        from: '0',
        up_to: null,
        quantity,
        unit_amount: '1',
        flat_amount: null,
        amount,
      })),
    });
    const costs = indexCosts(['1000', '1200'], [toCost('1000', ['100']), toCost('1200', ['100', '6'])]);
    expect(listTierTotals(draft, costs)).to.deep.equal(['100', null]);
    expect(listTierTotals({ ...draft, model: 'volume' }, costs)).to.deep.equal(['106', null]);
    expect(buildCurve(draft, ['1200', '1000'], costs)).to.deep.equal([
      { quantity: '1000', amount: '106', isTierEnd: true },
      { quantity: '1200', amount: '106', isTierEnd: false },
    ]);
    expect(computeAverage(toCost('1200000', []), 6)).to.equal('88.3333');
    expect(computeAverage(toCost('0', []), 6)).to.equal(null);
  });
});
