/** docs/rules/payments.md, "Paid at a provider": which reported refunds are recorded. */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import {
  computeFailedPart,
  findFailedRefund,
  listNewRefunds,
  type ReportedRefund,
} from '../../../core/payments/provider-payments.ts';

const there = (provider_refund_id: string, amount: string, change: Partial<ReportedRefund> = {}): ReportedRefund => ({
  ...{ provider_refund_id, amount, refund_status: 'succeeded', error: null, refund_id: null, ...change },
});
type Recorded = Parameters<typeof listNewRefunds>[2][number];
const here = (
  amount: string,
  gateway_refund_id: string | null,
  refund_status: Recorded['refund_status'],
  id = 'a',
): Recorded => ({ id, amount, gateway_refund_id, refund_status });

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
    [
      'ours, pending here and made there, beside a sum',
      '90',
      [there('re_1', '20'), there('re_2', '30'), there('re_3', '40', { refund_id: 'b' })],
      [here('50', null, 'succeeded', 'a'), here('40', null, 'pending', 'b')],
      [],
    ],
    [
      'an older report of one that has failed, beside a sum',
      '60',
      [there('re_1', '20'), there('re_2', '30'), there('re_3', '10')],
      [here('50', null, 'succeeded', 'a'), here('10', 're_3', 'failed', 'b')],
      [],
    ],
  ] as const)
    it(name, () => {
      const reported = { refunded_amount, ...(refunds ? { refunds } : {}) };
      const found = listNewRefunds(paymentWith(recorded), reported, recorded);
      expect(found.map(({ amount, provider_refund_id }) => `${amount} ${provider_refund_id}`)).to.deep.equal(expected);
    });
});

describe('failed refunds that a provider reports', () => {
  const failed = (provider_refund_id: string, amount: string, refund_id: string | null = null) =>
    there(provider_refund_id, amount, { refund_status: 'failed', refund_id });

  for (const [name, refund, recorded, expected] of [
    ['by its id there', failed('re_1', '10'), here('10', 're_1', 'succeeded'), 'a'],
    ['ours, which a person has ended', failed('re_1', '10', 'a'), here('10', null, 'succeeded'), 'a'],
    ['not an earlier attempt of one that was made', failed('re_1', '10', 'a'), here('10', 're_2', 'succeeded'), null],
    ['not one that has failed here', failed('re_1', '10'), here('10', 're_1', 'failed'), null],
    ['not one that is pending here', failed('re_1', '10'), here('10', 're_1', 'pending'), null],
    ['not one that was made', there('re_1', '10'), here('10', 're_1', 'succeeded'), null],
    ['not a sum', failed('re_1', '10'), here('10', null, 'succeeded'), null],
  ] as const)
    it(`finds the record: ${name}`, () => {
      expect(findFailedRefund([recorded], refund)?.id ?? null).to.equal(expected);
    });

  for (const [name, reported, recorded, expected] of [
    ['a part of a sum', [there('re_1', '30'), failed('re_2', '20')], [here('50', null, 'succeeded')], '20'],
    ['all of a sum', [failed('re_1', '20')], [here('20', null, 'succeeded')], '20'],
    [
      'of several, what is no longer made',
      [there('re_1', '40'), failed('re_2', '20')],
      [here('50', null, 'succeeded')],
      '10',
    ],
    [
      'one that the sum never contained',
      [there('re_1', '50'), failed('re_2', '20')],
      [here('50', null, 'succeeded')],
      '0',
    ],
    ['one that is recorded by itself', [failed('re_1', '20')], [here('20', 're_1', 'succeeded')], '0'],
    [
      'one that is only pending',
      [there('re_1', '20', { refund_status: 'pending' })],
      [here('20', null, 'succeeded')],
      '0',
    ],
    [
      'not a pending one that the sum may contain',
      [there('re_1', '20', { refund_status: 'pending' }), failed('re_2', '20')],
      [here('20', null, 'succeeded')],
      '0',
    ],
    ['beside one of ours that the report lacks', [failed('re_1', '20')], [here('40', 're_2', 'succeeded')], '0'],
    ['ours, which a person has ended', [failed('re_1', '20', 'a')], [here('20', null, 'succeeded')], '0'],
  ] as const)
    it(`names the part: ${name}`, () => {
      expect(computeFailedPart(recorded, reported).toFixed()).to.equal(expected);
    });
});
