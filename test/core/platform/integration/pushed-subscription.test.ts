/** The amount of a subscription at a provider of deals (docs/integrations/hubspot.md, "Deals"). */
import { expect } from 'chai';
import { deriveBusinessName } from '../../../../core/catalog/customer/business.ts';
import { computeRecurringAmount } from '../../../../core/platform/integration/pushed-subscription.ts';

type Line = Parameters<typeof computeRecurringAmount>[1][number];

const START = '2026-01-01T00:00:00.000Z';
const LATER = '2026-01-02T00:00:00.000Z';
const EARLIER = '2025-12-31T00:00:00.000Z';

const line = (amount: string, fields: Partial<Line> = {}): Line => ({
  price_type: 'FIXED',
  quantity: '1',
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  start_date: START,
  end_date: null,
  price: { billing_model: 'FLAT_FEE', currency: 'usd', amount } as Line['price'],
  ...fields,
});

describe('the amount of a subscription at a provider', () => {
  const monthly = { start_date: START, billing_period: 'MONTHLY', billing_period_count: 1, currency: 'usd' } as const;
  for (const [name, lines, amount, terms = {}] of [
    ['has no lines', [], '0'],
    ['is amount × quantity', [line('10', { quantity: '3' })], '30'],
    ['is the sum of the lines', [line('10'), line('5.25')], '15.25'],
    ['leaves usage out', [line('10'), line('7', { price_type: 'USAGE', quantity: '0' })], '10'],
    ['leaves one-time charges out', [line('10'), line('99', { billing_period: 'ONETIME' })], '10'],
    ['leaves out a line that begins later', [line('10'), line('7', { start_date: LATER })], '10'],
    ['leaves out a line that ended before', [line('7', { start_date: EARLIER, end_date: START })], '0'],
    ['has a line that began before and ends later', [line('7', { start_date: EARLIER, end_date: LATER })], '7'],
    ['has a twelfth of a yearly line', [line('120', { billing_period: 'ANNUAL' })], '10'],
    [
      'rounds each line',
      [line('100', { billing_period: 'ANNUAL' }), line('100', { billing_period: 'ANNUAL' })],
      '16.66',
    ],
    ['has 52/12 of a weekly line', [line('10', { billing_period: 'WEEKLY' })], '43.33'],
    ['of a year has twelve months', [line('10')], '120', { billing_period: 'ANNUAL' }],
    ['of two quarters has six months', [line('10')], '60', { billing_period: 'QUARTERLY', billing_period_count: 2 }],
  ] as readonly (readonly [string, readonly Line[], string, object?])[])
    it(`${name}: ${amount}`, () => {
      expect(computeRecurringAmount({ ...monthly, ...terms }, lines).toFixed()).to.equal(amount);
    });
});

describe('the business of a customer', () => {
  const person = { name: 'Acme', external_id: 'acme', tax_ids: null, metadata: {} };
  const tax_ids = [{ type: 'eu_vat', value: 'DE123456789' }];
  for (const [name, fields, business] of [
    ['a person', {}, null],
    ['no tax number', { tax_ids: [] }, null],
    ['a tax number', { tax_ids }, 'Acme'],
    ['a tax number without a name', { tax_ids, name: ' ' }, 'acme'],
    ['a named business', { metadata: { company_name: ' Acme AG ' } }, 'Acme AG'],
    ['an empty name', { metadata: { company_name: ' ' } }, null],
    ['both', { tax_ids, metadata: { company_name: 'Acme AG' } }, 'Acme AG'],
  ] as const)
    it(`${name}: ${business}`, () => {
      expect(deriveBusinessName({ ...person, ...fields } as Parameters<typeof deriveBusinessName>[0])).to.equal(
        business,
      );
    });
});
