// docs/rules/exports.md, "FOCUS".
import { expect } from 'chai';
import type { InvoiceLineItem } from '../../../../core/invoicing/invoice/record.ts';
import { FOCUS_COLUMNS, listFocusCharges } from '../../../../core/platform/export/focus.ts';

const LINE = {
  id: 'inv_line_1',
  customer_id: 'cust_1',
  subscription_id: 'subs_1',
  parent_line_item_id: null,
  price_type: 'FIXED',
  plan_display_name: 'Pro',
  display_name: 'Seats',
  quantity: '3',
  amount: '100',
  currency: 'eur',
  line_item_discount: '10',
  invoice_level_discount: '5',
  prepaid_credits_applied: '25',
  tax_amount: '12',
  metadata: { team: 'a' },
};
const INVOICE = {
  id: 'inv_1',
  invoice_number: 'INV-1',
  period_start: '2026-03-01T00:00:00.000Z',
  period_end: '2026-04-01T00:00:00.000Z',
  finalized_at: '2026-04-01T01:00:00.000Z',
};
const read = (change: object = {}) =>
  listFocusCharges({ ...LINE, ...change } as unknown as InvoiceLineItem, {
    seller: 'Seller Ltd',
    invoice: INVOICE as never,
    customer: { external_id: 'acme', name: 'Acme' },
  }).map((charge) => Object.fromEntries(FOCUS_COLUMNS.map(({ name, toCell }) => [name, toCell(charge)])));

describe('an invoice line in FOCUS', () => {
  it('is a charge, the credits that paid it, and its tax: together its share of the total', () => {
    const charges = read();
    expect(charges.map((one) => [one.ChargeCategory, one.BilledCost, one.ListCost, one.PricingQuantity])).to.deep.equal(
      [
        ['Purchase', '85', '100', '3'],
        ['Credit', '-25', '-25', null],
        ['Tax', '12', '12', null],
      ],
    );
    expect(charges[0]).to.include({
      BillingAccountId: 'acme',
      BillingCurrency: 'EUR',
      ChargeFrequency: 'Recurring',
      ConsumedQuantity: null,
      InvoiceIssuerName: 'Seller Ltd',
      ListUnitPrice: '33.333333333333',
      ServiceName: 'Pro',
      Tags: '{"team":"a"}',
      x_InvoiceNumber: 'INV-1',
    });
  });

  const ROWS: [what: string, change: object, category: string, frequency: string, correction: string | null][] = [
    ['usage', { price_type: 'USAGE' }, 'Usage', 'Usage-Based', null],
    [
      'late usage',
      { price_type: 'USAGE', parent_line_item_id: 'x', amount: '-1' },
      'Usage',
      'Usage-Based',
      'Correction',
    ],
    ['a credited charge', { amount: '-100' }, 'Credit', 'Recurring', null],
    ['a manual line', { subscription_id: null, price_type: null }, 'Purchase', 'One-Time', null],
  ];
  for (const [what, change, category, frequency, correction] of ROWS)
    it(`${what}: ${category}`, () => {
      const [charge] = read(change);
      expect([charge!.ChargeCategory, charge!.ChargeFrequency, charge!.ChargeClass]).to.deep.equal([
        category,
        frequency,
        correction,
      ]);
    });

  it('without units has no price of one', () => {
    expect(read({ quantity: '0', amount: '0' })[0]!.ListUnitPrice).to.equal(null);
  });

  it('has the columns of FOCUS in their order, then our own', () => {
    const names = FOCUS_COLUMNS.map(({ name }) => name);
    const own = names.filter((name) => name.startsWith('x_'));
    expect(names).to.deep.equal([...names.filter((name) => !own.includes(name)).toSorted(), ...own]);
  });
});
