import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal } from '../../../core/foundation/decimal.ts';
import {
  applyFailedPayment,
  applyPaidAmount,
  applyRefund,
  revertPaidAmount,
} from '../../../core/invoicing/invoice/payment-status.ts';
import { PAYMENT_STATUSES } from '../../../core/invoicing/invoice/record.ts';
import { canMove } from '../../../core/payments/moves.ts';
import { computeNextAttempt } from '../../../core/payments/schedule.ts';

const NOW = new Date('2026-01-01T00:00:00Z');

describe('states of a payment', () => {
  const allowed: Record<string, string[]> = {
    INITIATED: ['PENDING', 'PROCESSING', 'SUCCEEDED', 'FAILED', 'VOIDED'],
    PENDING: ['PROCESSING', 'SUCCEEDED', 'FAILED', 'VOIDED'],
    PROCESSING: ['PENDING', 'SUCCEEDED', 'FAILED'],
    SUCCEEDED: ['PARTIALLY_REFUNDED', 'REFUNDED', 'VOIDED'],
    PARTIALLY_REFUNDED: ['PARTIALLY_REFUNDED', 'REFUNDED'],
  };
  for (const from of PAYMENT_STATUSES)
    it(`from ${from}`, () => {
      expect(PAYMENT_STATUSES.filter((to) => canMove(from, to))).to.have.members(allowed[from] ?? []);
    });
});

describe('when a payment is tried again', () => {
  const config = { default_gateway: null, retry_after_days: [3, 5, 7], after_last_try: 'keep_active' as const };
  const cases: [number, string | null][] = [
    [1, '2026-01-04'],
    [2, '2026-01-06'],
    [3, '2026-01-08'],
    [4, null],
  ];
  for (const [attempt, day] of cases)
    it(`after try ${attempt}: ${day ?? 'never'}`, () =>
      expect(computeNextAttempt(attempt, config, NOW)?.toISOString().slice(0, 10) ?? null).to.equal(day));
});

describe('what payments make of an invoice', () => {
  const of = (due: string) => ({
    payment_status: 'PENDING' as const,
    amount_due: due,
    amount_paid: '0',
    currency: 'usd',
    paid_at: null,
    refunded_amount: '0',
    total_prepaid_credits_applied: '0',
  });

  type Paid = Omit<ReturnType<typeof of>, 'payment_status' | 'paid_at'> & ReturnType<typeof applyPaidAmount>;

  it('in whatever order they come, what is due is paid, remains, or is overpaid', () => {
    const cents = fc.integer({ min: 1, max: 100_000 }).map((n) => new Decimal(n).div(100).toFixed());
    const every = fc.property(cents, fc.array(cents, { minLength: 1, maxLength: 6 }), (due, amounts) => {
      const pay = (order: readonly string[]) =>
        order.reduce<Paid>((invoice, amount) => ({ ...invoice, ...applyPaidAmount(invoice, amount, NOW) }), {
          ...of(due),
          amount_remaining: due,
          overpaid_amount: null,
        });
      const paid = pay(amounts);
      expect(pay(amounts.toReversed())).to.deep.equal(paid);
      const over = new Decimal(paid.overpaid_amount ?? 0);
      expect(new Decimal(paid.amount_paid).plus(paid.amount_remaining).minus(over).toFixed()).to.equal(due);
      expect(paid.payment_status === 'OVERPAID').to.equal(over.gt(0));
      // What was recorded by mistake leaves no trace.
      const { amount_paid, amount_remaining } = revertPaidAmount(paid, amounts[0]!, NOW);
      const rest = pay(amounts.slice(1));
      expect([amount_paid, amount_remaining]).to.deep.equal([rest.amount_paid, rest.amount_remaining]);
    });
    fc.assert(every);
  });

  it('a charge on its way stays said while parts come in', () => {
    expect(applyPaidAmount({ ...of('10'), payment_status: 'PROCESSING' }, '4', NOW).payment_status).to.equal(
      'PROCESSING',
    );
  });

  it('a decline is said only where nobody else has paid meanwhile', () => {
    const charged = { ...of('10'), payment_status: 'PROCESSING' as const };
    expect(applyFailedPayment(charged, NOW).payment_status).to.equal('FAILED');
    expect(applyFailedPayment({ ...charged, amount_paid: '10' }, NOW).payment_status).to.equal('SUCCEEDED');
    expect(applyFailedPayment({ ...charged, payment_status: 'SUCCEEDED' }, NOW)).to.deep.equal({});
  });

  it('refunds are said beside what was paid in full; what is not paid in full, or too much, is lowered', () => {
    const of10 = (amount_paid: string, refunded_amount: string) => ({
      ...of('10'),
      payment_status: 'SUCCEEDED' as const,
      amount_paid,
      refunded_amount,
    });
    const after = (paid: string, refunded: string, amount: string, by_notes = '0') => {
      const { payment_status, amount_paid, amount_remaining, overpaid_amount, refunded_amount } = applyRefund(
        of10(paid, refunded),
        { refunded: amount, by_notes: new Decimal(by_notes), at: NOW },
      );
      return [payment_status, amount_paid, amount_remaining, overpaid_amount, refunded_amount];
    };
    expect(after('10', '4', '5')).to.deep.equal(['PARTIALLY_REFUNDED', '10', '0', null, '9']);
    expect(after('10', '4', '6')).to.deep.equal(['REFUNDED', '10', '0', null, '10']);
    expect(after('4', '0', '4')).to.deep.equal(['PENDING', '0', '10', null, '0']);
    expect(after('13', '0', '3')).to.deep.equal(['SUCCEEDED', '10', '0', null, '0']);
    expect(after('13', '0', '2')).to.deep.equal(['OVERPAID', '11', '0', '1', '0']);
    expect(after('13', '0', '5')).to.deep.equal(['PARTIALLY_REFUNDED', '10', '0', null, '2']);
    // Of which a credit note has given something back already.
    expect(after('15', '2', '4')).to.deep.equal(['PARTIALLY_REFUNDED', '11', '0', '1', '2']);
    // Refunds that were not made.
    expect(after('10', '2', '-5')).to.deep.equal(['OVERPAID', '13', '0', '3', '0']);
    expect(after('0', '0', '-4')).to.deep.equal(['PENDING', '4', '6', null, '0']);
    // A credit note returned 2, and the refund would have returned an overpaid amount.
    expect(after('12', '2', '-3', '2')).to.deep.equal(['PARTIALLY_REFUNDED', '15', '0', '5', '2']);
  });

  it('a refund and its negative leave what is held as it was, and what is held is paid less given back', () => {
    const cents = fc.integer({ min: 1, max: 3_000 });
    const every = fc.property(cents, cents, fc.array(cents, { maxLength: 4 }), (due, paid, refunds) => {
      const money = (n: number) => new Decimal(n).div(100).toFixed();
      const refundHeld = (from: Parameters<typeof applyRefund>[0], amount: number) =>
        applyRefund(from, { refunded: money(amount), by_notes: new Decimal(0), at: NOW });
      let held = { ...of(money(due)), ...applyPaidAmount(of(money(due)), money(paid), NOW) };
      const start = held;
      const fits: number[] = [];
      for (const refund of refunds) if (refund + fits.reduce((a, b) => a + b, 0) <= paid) fits.push(refund);
      for (const refund of fits) held = { ...held, ...refundHeld(held, refund) };
      const sum = fits.reduce((a, b) => a + b, 0);
      expect(new Decimal(held.amount_paid).minus(held.refunded_amount).toFixed()).to.equal(money(paid - sum));
      const remains = Decimal.max(0, new Decimal(held.amount_due).minus(held.amount_paid)).toFixed();
      expect(held.amount_remaining).to.equal(remains);
      const over = new Decimal(held.amount_paid).minus(held.amount_due);
      expect(held.overpaid_amount).to.equal(over.gt(0) ? over.toFixed() : null);
      for (const refund of fits.toReversed()) held = { ...held, ...refundHeld(held, -refund) };
      expect([held.amount_paid, held.refunded_amount]).to.deep.equal([start.amount_paid, '0']);
    });
    fc.assert(every);
  });
});
