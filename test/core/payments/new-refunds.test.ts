/** docs/rules/payments.md, "Paid at a provider": which reported refunds are recorded. */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { listNewRefunds, type ReportedRefund } from '../../../core/payments/provider-payments.ts';

const there = (provider_refund_id: string, amount: string, change: Partial<ReportedRefund> = {}): ReportedRefund => ({
  ...{ provider_refund_id, amount, refund_status: 'succeeded', error: null, refund_id: null, ...change },
});
type Recorded = Parameters<typeof listNewRefunds>[2][number];
const here = (
  amount: string,
  gateway_refund_id: string | null,
  refund_status: Recorded['refund_status'],
): Recorded => ({ id: 'a', amount, gateway_refund_id, refund_status });

/** A payment of 100 that contains the recorded refunds. */
const paymentWith = (recorded: readonly Recorded[]) => {
  const booked = recorded.filter(({ refund_status }) => refund_status !== 'failed');
  const refunded_amount = sumDecimals(booked.map(({ amount }) => new Decimal(amount))).toFixed();
  const ids = { id: 'p', connection_id: null, gateway_payment_id: 'pi_1', gateway_tracking_id: null };
  return {
    ...{
      ...ids,
      payment_gateway: 'stripe',
      payment_status: 'SUCCEEDED',
      amount: '100',
      currency: 'usd',
      refunded_amount,
    },
  } as Parameters<typeof listNewRefunds>[0];
};

describe('refunds that a provider reports', () => {
  for (const [name, refunded_amount, refunds, recorded, expected] of [
    ['nothing is missing', '10', [there('re_1', '10')], [here('10', 're_1', 'succeeded')], []],
    ['each with its id', '30', [there('re_1', '10'), there('re_2', '20')], [], ['10 re_1', '20 re_2']],
    ['without a list as one sum', '30', undefined, [], ['30 null']],
    ['without a list a pending one may be the reported one', '30', undefined, [here('30', null, 'pending')], []],
    ['in a list a pending one is known', '30', [there('re_1', '30')], [here('40', null, 'pending')], ['30 re_1']],
    [
      'a recorded one is left out',
      '30',
      [there('re_1', '10'), there('re_2', '20')],
      [here('10', 're_1', 'succeeded')],
      ['20 re_2'],
    ],
    ['an older report of one that has failed', '10', [there('re_1', '10')], [here('10', 're_1', 'failed')], []],
    ['ours, whose answer was lost', '10', [there('re_1', '10', { refund_id: 'a' })], [here('10', null, 'pending')], []],
    [
      'ours, refused here and made there',
      '10',
      [there('re_1', '10', { refund_id: 'a' })],
      [here('10', null, 'failed')],
      ['10 re_1'],
    ],
    ['pending ones do not count', '10', [there('re_1', '10', { refund_status: 'pending' })], [], []],
    [
      'a part is recorded in one sum',
      '30',
      [there('re_1', '10'), there('re_2', '20')],
      [here('20', null, 'succeeded')],
      ['10 null'],
    ],
  ] as const)
    it(name, () => {
      const reported = { refunded_amount, ...(refunds ? { refunds } : {}) };
      const found = listNewRefunds(paymentWith(recorded), reported, recorded);
      expect(found.map(({ amount, provider_refund_id }) => `${amount} ${provider_refund_id}`)).to.deep.equal(expected);
    });
});
