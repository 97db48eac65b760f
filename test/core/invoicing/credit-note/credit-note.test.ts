import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, ZERO } from '../../../../core/foundation/decimal.ts';
import { minorUnits } from '../../../../core/foundation/money.ts';
import type { CreditableLine } from '../../../../core/invoicing/credit-note/creditable.ts';
import { planCreditedInvoice, planUncreditedInvoice } from '../../../../core/invoicing/credit-note/effect.ts';
import { type CreditedInvoice, planCreditNote } from '../../../../core/invoicing/credit-note/plan.ts';
import type { Invoice } from '../../../../core/invoicing/invoice/record.ts';

const NOW = new Date('2026-03-01T00:00:00Z');
const CURRENCIES = ['usd', 'jpy', 'kwd', 'clf'];

/** Whole minor units as an amount. */
const money = (units: number, currency: string) =>
  new Decimal(units).dividedBy(new Decimal(10).pow(minorUnits(currency)));

/** A line and the parts, in minor units, in which it is given back, the last of which takes what is left. */
const lineInParts = fc
  .record({
    currency: fc.constantFrom(...CURRENCIES),
    parts: fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 8 }),
    discount: fc.integer({ min: 0, max: 5_000 }),
    tax: fc.integer({ min: 0, max: 20_000 }),
  })
  .map(({ currency, parts, discount, tax }) => {
    const charged = parts.reduce((sum, part) => sum + part, 0);
    const line: CreditableLine = {
      id: 'line',
      amount: money(charged + discount, currency),
      discount: money(discount, currency),
      tax: money(tax, currency),
      credited: ZERO,
      tax_credited: ZERO,
    };
    return { currency, line, parts: parts.map((part) => money(part, currency)) };
  });

describe('credit notes', () => {
  it('of one line give back exactly what it charged, with all of its tax, in whatever parts', () => {
    fc.assert(
      fc.property(lineInParts, ({ currency, line, parts }) => {
        const paid = line.amount.minus(line.discount).plus(line.tax);
        let invoice = paidInvoice(paid, currency);
        let left = line;
        let given = ZERO;
        for (const part of parts) {
          const asked = [{ invoice_line_item_id: 'line', amount: part.toFixed() }];
          const { lines, total, credit_note_type } = planCreditNote(invoice, [left], asked);
          const [one] = lines;
          expect(one!.tax.decimalPlaces()).to.be.at.most(minorUnits(currency));
          left = {
            ...left,
            credited: left.credited.plus(one!.amount),
            tax_credited: left.tax_credited.plus(one!.tax),
          };
          expect(left.tax_credited.lte(line.tax), 'never more tax than there was').to.equal(true);
          given = given.plus(total);
          const note = { credit_note_type, total_amount: total.toFixed() };
          invoice = { ...invoice, ...planCreditedInvoice(invoice, note, NOW) };
        }
        expect(given.toFixed()).to.equal(paid.toFixed());
        expect(invoice.payment_status).to.equal('REFUNDED');
        const more = [{ invoice_line_item_id: 'line', amount: parts[0]!.toFixed() }];
        expect(() => planCreditNote({ ...invoice, payment_status: 'SUCCEEDED' }, [left], more)).to.throw(
          /left of the line/,
        );
      }),
    );
  });

  it('an adjustment that is voided leaves the invoice as it was', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 0, max: 1000 }), (due, share) => {
        const paid = Math.floor((due * share) / 1001);
        const before = {
          ...paidInvoice(new Decimal(paid), 'usd'),
          ...dueOf(due, paid),
          payment_status: 'PENDING',
        } as Invoice;
        const note = { credit_note_type: 'ADJUSTMENT' as const, total_amount: String(due - paid) };
        const adjusted = { ...before, ...planCreditedInvoice(before, note, NOW) };
        expect(adjusted).to.include({ amount_remaining: '0', payment_status: 'SUCCEEDED' });
        const after = { ...adjusted, ...planUncreditedInvoice(adjusted, note) };
        expect(after).to.deep.equal({ ...before, paid_at: null, overpaid_amount: null });
      }),
    );
  });

  const refused: [string, Partial<CreditedInvoice>, string, RegExp][] = [
    ['a draft', { invoice_status: 'DRAFT' }, '5', /only a final one/],
    ['one that is refunded', { payment_status: 'REFUNDED' }, '5', /cannot be credited/],
    ['nothing', {}, '0', /more than 0/],
    ['parts of a cent', {}, '0.001', /decimals/],
    ['more than the line', {}, '10.01', /left of the line, 10$/],
    ['more than was paid', { amount_paid: '4' }, '5', /no more than 4 /],
  ];
  for (const [name, fields, amount, message] of refused)
    it(`refuses ${name}`, () => {
      const line = { id: 'a', amount: new Decimal(10), discount: ZERO, tax: ZERO, credited: ZERO, tax_credited: ZERO };
      const invoice = { ...paidInvoice(new Decimal(10), 'usd'), ...fields };
      expect(() => planCreditNote(invoice, [line], [{ invoice_line_item_id: 'a', amount }])).to.throw(message);
    });
});

function paidInvoice(paid: Decimal, currency: string): Invoice {
  const amount = paid.toFixed();
  return {
    invoice_status: 'FINALIZED',
    payment_status: 'SUCCEEDED',
    currency,
    total: amount,
    amount_due: amount,
    amount_paid: amount,
    amount_remaining: '0',
    adjustment_amount: '0',
    refunded_amount: '0',
    total_prepaid_credits_applied: '0',
  } as Invoice;
}

const dueOf = (due: number, paid: number) => ({
  total: String(due),
  amount_due: String(due),
  amount_remaining: String(due - paid),
});
