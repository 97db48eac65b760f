/** What is left of a wallet in real time (docs/rules/wallets.md, "The balance in real time"). */
import { expect } from 'chai';
import { computeRealTimeBalance, type UnpaidInvoice } from '../../../../core/credits/wallet/real-time.ts';
import type { Wallet } from '../../../../core/credits/wallet/record.ts';
import { Decimal } from '../../../../core/foundation/decimal.ts';

const WALLET = {
  wallet_type: 'PRE_PAID',
  wallet_status: 'active',
  balance: '20',
  conversion_rate: '1',
} satisfies Partial<Wallet>;

/** Of $110: 100 fixed and 10 of usage. */
function mixed(amount_paid: string): UnpaidInvoice {
  const line = (price_type: string, amount: string) => ({
    price_type,
    amount: new Decimal(amount),
    credits_applied: new Decimal(0),
    discount: new Decimal(0),
  });
  return {
    amount_paid: new Decimal(amount_paid),
    amount_remaining: new Decimal(110).minus(amount_paid),
    lines: [line('FIXED', '100'), line('USAGE', '10')],
  };
}

describe('the balance of a wallet in real time', () => {
  const cases: [string, UnpaidInvoice[], string, string][] = [
    ['all usage of an invoice that is not paid is owed', [mixed('0')], '10', '10'],
    ['a payment pays the usage first', [mixed('4')], '6', '14'],
    ['what it pays of the other lines is nothing that could be spent', [mixed('50')], '0', '20'],
    ['nor does it pay for the usage of another invoice', [mixed('50'), mixed('0')], '10', '10'],
  ];
  for (const [what, unpaid, owed, left] of cases)
    it(what, () => {
      const { unpaid_invoices_amount, real_time_balance } = computeRealTimeBalance(
        { ...WALLET, config: { allowed_price_types: ['USAGE'] } },
        { current_usage: new Decimal(0), unpaid },
      );
      expect([unpaid_invoices_amount, real_time_balance]).to.deep.equal([owed, left]);
    });
});
