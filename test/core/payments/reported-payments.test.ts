/** docs/rules/payments.md, "Paid at a provider": which reported payments are recorded. */
import { expect } from 'chai';
import { planReport, type ReportedPayment } from '../../../core/payments/provider-payments.ts';

type ReportInput = Parameters<typeof planReport>[0];

const there = (provider_payment_id: string, reported_payment_id: string | null): ReportedPayment => ({
  ...{ provider_payment_id, reported_payment_id, payment_status: 'succeeded', amount: '40', currency: 'usd' },
  ...{ paid_at: null, refunded_amount: '0', provider_tax: null },
});
const recorded = (gateway_payment_id: string | null = null) => ({
  ...{ id: 'pay_ours', connection_id: null, gateway_payment_id, gateway_tracking_id: null, payment_gateway: null },
  ...{ payment_status: 'SUCCEEDED' as const, amount: '40', refunded_amount: '0', currency: 'usd' },
});
const plan = (payment: ReportedPayment, input: Partial<ReportInput> = {}) =>
  planReport({
    ...{ invoice: { invoice_status: 'FINALIZED', currency: 'usd', amount_remaining: '60' }, recorded: [recorded()] },
    ...{ own_ids: new Set(['inv_ours', 'pay_ours']), sent_ids: new Set(), pushed_ids: new Map(), overpaid: new Map() },
    ...{ is_sending: false, connection_id: 'conn_1', provider_type: 'quickbooks' },
    reported: { invoice_status: 'open', total: '100', currency: 'usd', payments: [payment] },
    ...input,
  } as ReportInput);
const pushed = { sent_ids: new Set(['7']), pushed_ids: new Map([['pay_ours', '7']]) };

describe('payments that a provider reports', () => {
  for (const [name, payment, input, isRecorded] of [
    ['without a mark', there('9', null), {}, true],
    ['with the mark of a payment of the invoice, which was requested', there('9', 'pay_ours'), {}, false],
    ['with the mark of the invoice, which was marked as paid by hand', there('9', 'inv_ours'), {}, false],
    ['with the mark of a sent payment and its id', there('7', 'pay_ours'), pushed, false],
    ['a copy of a sent payment, with its mark', there('9', 'pay_ours'), pushed, true],
    ['a copy with the mark of a payment of another invoice', there('9', 'pay_other'), {}, true],
    ['a copy with the mark of another invoice', there('9', 'inv_other'), {}, true],
    ['recorded already', there('9', 'pay_other'), { recorded: [recorded('9')] }, false],
    ['linked by hand', there('9', null), { sent_ids: new Set(['9']) }, false],
    ['being sent, whose id is not known yet', there('9', 'pay_ours'), { is_sending: true }, false],
  ] as const)
    it(`${name}: ${isRecorded ? 'recorded' : 'not recorded'}`, () => {
      const { received, is_undecided } = plan(payment, input);
      expect([received.length, is_undecided]).to.deep.equal([isRecorded ? 1 : 0, false]);
    });
});
