import { expect } from 'chai';
import { definePrice } from '../../../core/catalog/price/define.ts';
import { createPriceShape, type Price } from '../../../core/catalog/price/record.ts';
import { buildLineItem, buildOverriddenPrice, selectPricesToCopy } from '../../../core/subscriptions/lines.ts';

const NOW = Date.parse('2026-03-15T00:00:00Z');
const base = {
  tenant_id: 't',
  environment_id: 'e',
  status: 'published' as const,
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
  created_by: '',
  updated_by: '',
};
const price = (fields: Record<string, unknown> = {}): Price => {
  const request = createPriceShape.parse({
    entity_type: 'PLAN',
    entity_id: 'plan_1',
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ADVANCE',
    currency: 'usd',
    amount: '10',
  });
  return { ...definePrice(request), id: 'price_1', sequence: 1, ...base, ...fields } as Price;
};
const usagePrice = (fields: Record<string, unknown> = {}) =>
  price({ type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: 'meter_1', ...fields });
const line = (
  of: Price,
  more: { quantity?: string; start_date?: string; end_date?: string | null; years?: number } = {},
) =>
  buildLineItem({
    price: of,
    subscription: {
      start_date: more.start_date ?? '2026-03-15T00:00:00Z',
      end_date: more.end_date ?? null,
      billing_period: 'ANNUAL',
      billing_period_count: more.years ?? 1,
    },
    now: NOW,
    entity: { entity_id: 'plan_1', entity_type: 'plan', name: 'Pro' },
    meter_name: 'Calls',
    quantity: more.quantity ?? null,
  });

describe('line items of a new subscription', () => {
  const terms = { start: NOW, end: null, now: NOW };
  const copied: [string, Record<string, unknown>, boolean][] = [
    ['a price in force', {}, true],
    ['one that ends later', { end_date: '2026-03-15T00:00:00.001Z' }, true],
    ['one that ends now', { end_date: '2026-03-15T00:00:00Z' }, false],
    ['one that starts later', { start_date: '2026-04-01T00:00:00Z' }, true],
    ['another currency', { currency: 'eur' }, false],
    ['an archived one', { status: 'archived' }, false],
  ];
  for (const [name, fields, isCopied] of copied) {
    it(`${isCopied ? 'copies' : 'leaves out'} ${name}`, () => {
      const kept = price({ id: 'price_kept' });
      const ids = selectPricesToCopy([price(fields), kept], 'usd', terms).map(({ id }) => id);
      expect(ids).to.deep.equal(isCopied ? ['price_1', 'price_kept'] : ['price_kept']);
    });
  }

  it('a start in the past does not bring expired prices back; one in the future leaves out what ends before it', () => {
    const ended = price({ end_date: '2026-03-01T00:00:00Z' });
    const ending = price({ end_date: '2026-04-01T00:00:00Z' });
    expect(() => selectPricesToCopy([ended], 'usd', { ...terms, start: Date.parse('2026-02-01T00:00:00Z') })).to.throw(
      /no price/,
    );
    expect(() => selectPricesToCopy([ending], 'usd', { ...terms, start: Date.parse('2026-04-01T00:00:00Z') })).to.throw(
      /no price/,
    );
  });

  it('a period of the subscription is made of a thousand of a line at most', () => {
    const daily = price({ billing_period: 'DAILY' });
    expect(line(daily, { years: 2 }).billing_period).to.equal('DAILY');
    expect(() => line(daily, { years: 3 })).to.throw(/more than 1000 of price price_1/);
    expect(line(price(), { years: 70 }).billing_period).to.equal('MONTHLY');
    expect(() => line(price(), { years: 90 })).to.throw(/more than 1000/);
    expect(line(price({ billing_period: 'ONETIME' }), { years: 9_000 }).billing_period).to.equal('ONETIME');
  });

  const quantities: [string, Price, string | undefined, string][] = [
    ['one without a minimum', price(), undefined, '1'],
    ['the minimum', price({ min_quantity: '5' }), undefined, '5'],
    ['the minimum for 0', price({ min_quantity: '5' }), '0', '5'],
    ['what is given', price({ min_quantity: '5' }), '7.5', '7.5'],
    ['nothing for usage', usagePrice(), undefined, '0'],
  ];
  for (const [name, of, given, quantity] of quantities) {
    it(`quantity: ${name}`, () => {
      expect(line(of, { quantity: given }).quantity).to.equal(quantity);
    });
  }

  it('quantity: not below the minimum, not below nothing', () => {
    expect(() => line(price({ min_quantity: '5' }), { quantity: '4.9' })).to.throw(/min_quantity/);
    expect(() => line(price(), { quantity: '-1' })).to.throw(/negative/);
  });

  const lives: [string, Record<string, unknown>, { start_date?: string; end_date?: string }, (string | null)[]][] = [
    ['as the subscription', { start_date: '2026-01-01T00:00:00Z' }, {}, ['2026-03-15T00:00:00.000Z', null]],
    // The price was made today; a backdated subscription is charged from its start all the same.
    [
      'backdated',
      { start_date: '2026-03-15T00:00:00Z' },
      { start_date: '2026-01-01T00:00:00Z' },
      ['2026-01-01T00:00:00.000Z', null],
    ],
    ['from when the price starts', { start_date: '2026-05-01T00:00:00Z' }, {}, ['2026-05-01T00:00:00.000Z', null]],
    [
      'until the first of both ends',
      { end_date: '2026-06-01T00:00:00Z' },
      { end_date: '2026-07-01T00:00:00Z' },
      ['2026-03-15T00:00:00.000Z', '2026-06-01T00:00:00.000Z'],
    ],
  ];
  for (const [name, fields, subscription, expected] of lives) {
    it(`lives ${name}`, () => {
      const { start_date, end_date } = line(price(fields), subscription);
      expect([start_date, end_date]).to.deep.equal(expected);
    });
  }

  it('an override keeps what it does not name, and the lineage of its root', () => {
    const place = { id: 'subs_1', start_date: '2026-03-15T00:00:00Z' };
    const root = usagePrice({ parent_price_id: 'price_0', lookup_key: 'calls', min_quantity: null });
    const made = buildOverriddenPrice(root, { price_id: root.id, amount: '0.5' }, place);
    expect(made).to.include({
      amount: '0.5',
      display_amount: '$0.50',
      entity_type: 'SUBSCRIPTION',
      entity_id: 'subs_1',
      parent_price_id: 'price_0',
      lookup_key: null,
      meter_id: 'meter_1',
      type: 'USAGE',
      invoice_cadence: 'ARREAR',
    });
    expect(() => buildOverriddenPrice(root, { price_id: root.id, billing_model: 'TIERED' }, place)).to.throw(/tiers/);
  });
});
