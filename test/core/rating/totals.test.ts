// The order of what stands between the lines of an invoice and what is to be paid.
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { roundMoney } from '../../../core/foundation/money.ts';
import { type Adjustments, computeTotals, totalsText } from '../../../core/rating/totals.ts';

const of = (amount: string) => () => new Decimal(amount);
const upTo = (amount: string) => (remaining: Decimal) => Decimal.min(remaining, amount);
const share = (rate: string) => (remaining: Decimal) => roundMoney(remaining.times(rate), 'usd');
const said = (lines: string[], adjustments: Adjustments = {}) =>
  totalsText(
    computeTotals(
      lines.map((line) => new Decimal(line)),
      'usd',
      adjustments,
    ),
  );
const NONE = { total_discount: '0', total_prepaid_credits_applied: '0', total_tax: '0', adjustment_amount: '0' };

describe('the totals of an invoice', () => {
  const rows: [string, string[], Adjustments, Record<string, string>][] = [
    ['without lines', [], {}, { subtotal: '0', total: '0', amount_due: '0', amount_remaining: '0' }],
    ['of lines alone', ['10.5', '2'], {}, { ...NONE, subtotal: '12.5', total: '12.5', amount_remaining: '12.5' }],
    ['a discount is of the lines', ['100'], { total_discount: share('0.1') }, { total_discount: '10', total: '90' }],
    [
      'credits pay what discounts leave, and no more',
      ['100'],
      { total_discount: of('80'), total_prepaid_credits_applied: upTo('50') },
      { total_prepaid_credits_applied: '20', total: '0' },
    ],
    [
      'what is taxed is what discounts and credits leave: 20 % of 60',
      ['100'],
      { total_discount: of('10'), total_prepaid_credits_applied: upTo('30'), total_tax: share('0.2') },
      { subtotal: '100', total_tax: '12', total: '72', amount_due: '72' },
    ],
    ['the total is never below 0', ['5'], { total_discount: of('8') }, { total: '0', amount_due: '0' }],
    [
      'adjustments lower what is due and not the total, payments only what remains',
      ['50'],
      { adjustment_amount: of('20'), amount_paid: of('10') },
      { total: '50', amount_due: '30', amount_paid: '10', amount_remaining: '20' },
    ],
    [
      'what was paid too much remains as 0',
      ['50'],
      { amount_paid: of('60') },
      { amount_due: '50', amount_remaining: '0' },
    ],
  ];
  for (const [what, lines, adjustments, expected] of rows)
    it(what, () => expect(said(lines, adjustments)).to.include(expected));

  it('each adjustment sees what those before it left', () => {
    const seen: string[] = [];
    const one = (name: string) => (remaining: Decimal) => {
      seen.push(`${name} of ${remaining.toFixed()}`);
      return new Decimal(1);
    };
    const names = ['amount_paid', 'adjustment_amount', 'total_tax', 'total_prepaid_credits_applied', 'total_discount'];
    said(['10'], Object.fromEntries(names.map((name) => [name, one(name)])));
    expect(seen).to.deep.equal([
      'total_discount of 10',
      'total_prepaid_credits_applied of 9',
      'total_tax of 8',
      'adjustment_amount of 9',
      'amount_paid of 8',
    ]);
  });

  it('an amount that was not rounded is refused by name, whoever brings it', () => {
    expect(() => said(['0.005'])).to.throw('a line of 0.005 usd was not rounded');
    expect(() => said(['1'], { total_tax: of('0.005') })).to.throw('total_tax of 0.005 usd was not rounded');
  });

  it('the fields add up, whatever they are', () => {
    const cents = fc.integer({ min: 0, max: 10_000 }).map((n) => new Decimal(n).div(100));
    fc.assert(
      fc.property(fc.array(cents), cents, cents, cents, (lines, discount, credits, tax) => {
        const totals = computeTotals(lines, 'usd', {
          total_discount: (remaining) => Decimal.min(remaining, discount),
          total_prepaid_credits_applied: (remaining) => Decimal.min(remaining, credits),
          total_tax: () => tax,
        });
        const { subtotal, total_discount, total_prepaid_credits_applied, total_tax, total } = totals;
        const sum = subtotal.minus(total_discount).minus(total_prepaid_credits_applied).plus(total_tax);
        expect(total.toFixed()).to.equal(sum.toFixed());
        expect(totals.amount_remaining.plus(totals.amount_paid).eq(totals.amount_due)).to.equal(true);
      }),
    );
  });
});
