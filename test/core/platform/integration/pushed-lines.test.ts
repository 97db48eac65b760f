/** docs/integrations/README.md, "Amounts". */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../../core/foundation/decimal.ts';
import type { InvoiceLineItem } from '../../../../core/invoicing/invoice/record.ts';
import { computePushedLines } from '../../../../core/platform/integration/pushed-lines.ts';

type LineAmounts = { amount: string; coupon?: string; shared?: string; credits?: string };

const line = ({ amount, coupon = '0', shared = '0', credits = '0' }: LineAmounts, index = 0) =>
  ({
    id: `inv_line_${index}`,
    display_name: `Line ${index}`,
    amount,
    line_item_discount: coupon,
    invoice_level_discount: shared,
    prepaid_credits_applied: credits,
    period_start: '2026-01-01T00:00:00Z',
    period_end: '2026-02-01T00:00:00Z',
  }) as unknown as InvoiceLineItem;

const push = (
  amount_remaining: string,
  lines: InvoiceLineItem[],
  taxes: { label: string; amount: string; is_included?: boolean }[] = [],
  { amount_paid = '0', adjustment_amount = '0' } = {},
) =>
  computePushedLines({ invoice: { id: 'inv_1', amount_remaining, amount_paid, adjustment_amount }, lines, taxes }).map(
    ({ description, amount }) => `${description} ${amount}`,
  );

describe('lines of an invoice for a provider', () => {
  const cases: [string, string[], string[]][] = [
    ['a plain line', push('10', [line({ amount: '10' })]), ['Line 0 10']],
    [
      'discounts of the line and of the invoice, and prepaid credits, are taken off the line: 100 − 10 − 5 − 20',
      push('65', [line({ amount: '100', coupon: '10', shared: '5', credits: '20' })]),
      ['Line 0 65'],
    ],
    [
      'an added tax is a line, an included one is part of the amounts',
      push(
        '119',
        [line({ amount: '100' })],
        [
          { label: 'VAT 19%', amount: '19' },
          { label: 'GST', amount: '9', is_included: true },
        ],
      ),
      ['Line 0 100', 'VAT 19% 19'],
    ],
    [
      'payments, credits after tax and adjustments are one line: 119 − 50 − 20',
      push('49', [line({ amount: '100' })], [{ label: 'VAT 19%', amount: '19' }], {
        amount_paid: '50',
        adjustment_amount: '20',
      }),
      ['Line 0 100', 'VAT 19% 19', 'Paid or credited already -70'],
    ],
    [
      'a line that credits is negative; one of nothing is left out',
      push('7', [line({ amount: '10' }), line({ amount: '-3' }, 1), line({ amount: '0' }, 2)]),
      ['Line 0 10', 'Line 1 -3'],
    ],
  ];
  for (const [title, found, expected] of cases) it(title, () => expect(found).to.deep.equal(expected));

  it('a remaining amount that does not follow from lines, payments and adjustments is a fault', () => {
    const lines = [line({ amount: '10' })];
    expect(() => push('11', lines)).to.throw(/add up to 10, and 0 is paid or credited: 10 remains, not 11/);
    expect(() => push('9', lines)).to.throw(/10 remains, not 9/);
    expect(() => push('7', lines, [], { amount_paid: '2' })).to.throw(/2 is paid or credited: 8 remains, not 7/);
  });

  it('always add up to what remains to be paid', () => {
    const cents = fc.integer({ min: 0, max: 100_000 }).map((value) => new Decimal(value).div(100));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(cents, cents), { minLength: 1, maxLength: 8 }),
        cents,
        fc.tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 50 })),
        (amounts, tax, [paid, adjusted]) => {
          const lines = amounts.map(([amount, off], index) =>
            line({ amount: amount.plus(off).toFixed(), coupon: off.toFixed() }, index),
          );
          const total = sumDecimals(amounts.map(([amount]) => amount)).plus(tax);
          const [amount_paid, adjustment_amount] = [total.times(paid).div(100), total.times(adjusted).div(100)];
          const remaining = total.minus(amount_paid).minus(adjustment_amount);
          const pushed = computePushedLines({
            invoice: {
              id: 'inv_1',
              amount_paid: amount_paid.toFixed(),
              adjustment_amount: adjustment_amount.toFixed(),
              amount_remaining: remaining.toFixed(),
            },
            lines,
            taxes: [{ label: 'VAT', amount: tax.toFixed() }],
          });
          expect(sumDecimals(pushed.map(({ amount }) => new Decimal(amount))).toFixed()).to.equal(remaining.toFixed());
        },
      ),
    );
  });
});
