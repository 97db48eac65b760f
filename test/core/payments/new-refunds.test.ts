/** docs/rules/payments.md, "Paid at a provider": which reported refunds are recorded. */
import { expect } from 'chai';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { listNewRefunds, type ReportedRefund } from '../../../core/payments/provider-payments.ts';

const there = (provider_refund_id: string, amount: string, change: Partial<ReportedRefund> = {}): ReportedRefund => ({
  ...{ provider_refund_id, amount, refund_status: 'succeeded', error: null, refund_id: null, ...change },
});
const here = (id: string, gateway_refund_id: string | null, refund_status: 'pending' | 'succeeded' | 'failed') => ({
  ...{ id, gateway_refund_id, refund_status },
});

describe('refunds that a provider reports', () => {
  for (const [name, missing, refunds, recorded, expected] of [
    ['nothing is missing', '0', [there('re_1', '10')], [], []],
    ['each with its id', '30', [there('re_1', '10'), there('re_2', '20')], [], ['10 re_1', '20 re_2']],
    ['without a list as one sum', '30', undefined, [], ['30 null']],
    [
      'a recorded one is left out',
      '20',
      [there('re_1', '10'), there('re_2', '20')],
      [here('a', 're_1', 'succeeded')],
      ['20 re_2'],
    ],
    ['an older report of one that has failed', '10', [there('re_1', '10')], [here('a', 're_1', 'failed')], []],
    ['ours, whose answer was lost', '10', [there('re_1', '10', { refund_id: 'a' })], [here('a', null, 'pending')], []],
    [
      'ours, refused here and made there',
      '10',
      [there('re_1', '10', { refund_id: 'a' })],
      [here('a', null, 'failed')],
      ['10 re_1'],
    ],
    ['pending and failed ones do not count', '10', [there('re_1', '10', { refund_status: 'pending' })], [], []],
    [
      'a part is recorded in one sum',
      '10',
      [there('re_1', '10'), there('re_2', '20')],
      [here('a', null, 'succeeded')],
      ['10 null'],
    ],
  ] as const)
    it(name, () => {
      const found = listNewRefunds(new Decimal(missing), refunds ? { refunds } : {}, recorded);
      expect(found.map(({ amount, provider_refund_id }) => `${amount} ${provider_refund_id}`)).to.deep.equal(expected);
    });
});
