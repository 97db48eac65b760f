import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { canBecome, planPaymentChange } from '../../../../core/invoicing/invoice/payment-status.ts';
import { PAYMENT_STATUSES } from '../../../../core/invoicing/invoice/record.ts';

describe('payment status of an invoice', () => {
  const allowed: Record<string, string[]> = {
    PENDING: ['PENDING', 'SUCCEEDED', 'OVERPAID', 'FAILED'],
    FAILED: ['PENDING', 'FAILED', 'SUCCEEDED', 'OVERPAID'],
    SUCCEEDED: ['SUCCEEDED', 'OVERPAID'],
    OVERPAID: ['OVERPAID'],
  };
  for (const from of PAYMENT_STATUSES) {
    it(`from ${from}`, () => {
      const reached = PAYMENT_STATUSES.filter((to) => canBecome(from, to));
      expect(reached).to.have.members(allowed[from] ?? []);
    });
  }

  it('paid and remaining make what is due, or the rest is overpaid', () => {
    const cents = fc.integer({ min: 1, max: 1_000_000 });
    const status = fc.constantFrom('PENDING', 'SUCCEEDED', 'OVERPAID', 'FAILED' as const);
    let accepted = 0;
    fc.assert(
      fc.property(cents, cents, status, (due, paid, payment_status) => {
        const invoice = {
          invoice_status: 'FINALIZED' as const,
          payment_status: 'PENDING' as const,
          amount_due: new Decimal(due).div(100).toFixed(),
          amount_paid: '0',
          currency: 'usd',
        };
        const amount = new Decimal(payment_status === 'SUCCEEDED' ? due : paid).div(100).toFixed();
        const fits = { PENDING: paid < due, FAILED: paid < due, SUCCEEDED: true, OVERPAID: paid > due }[payment_status];
        const decide = () => planPaymentChange(invoice, { payment_status, amount }, new Date('2026-01-01T00:00:00Z'));
        if (!fits) {
          expect(decide).to.throw(/amount/);
          return;
        }
        accepted += 1;
        const change = decide();
        const total = new Decimal(change.amount_paid).plus(change.amount_remaining).minus(change.overpaid_amount ?? 0);
        expect(total.toFixed()).to.equal(invoice.amount_due);
        expect(change.paid_at === null).to.equal(payment_status === 'PENDING' || payment_status === 'FAILED');
      }),
    );
    expect(accepted).to.be.greaterThan(10);
  });
});
