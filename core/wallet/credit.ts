/** What a credit of an amount of money makes of a wallet (docs/rules/wallets.md, "Credits of changes"). */
import { Decimal } from '../decimal.ts';
import { MAX_FRACTION_DIGITS } from '../money.ts';
import type { Wallet, WalletTransaction } from './record.ts';

type Balances = Pick<Wallet, 'balance' | 'credit_balance'>;
type Amounts = Pick<
  WalletTransaction,
  'amount' | 'credit_amount' | 'credit_balance_before' | 'credit_balance_after' | 'credits_available'
>;

export function creditOf(
  wallet: Pick<Wallet, 'balance' | 'credit_balance' | 'conversion_rate'>,
  amount: Decimal,
): { wallet: Balances; transaction: Amounts } {
  const credits = amount.dividedBy(wallet.conversion_rate).toDecimalPlaces(MAX_FRACTION_DIGITS);
  const after = credits.plus(wallet.credit_balance);
  return {
    wallet: { balance: amount.plus(wallet.balance).toFixed(), credit_balance: after.toFixed() },
    transaction: {
      amount: amount.toFixed(),
      credit_amount: credits.toFixed(),
      credit_balance_before: new Decimal(wallet.credit_balance).toFixed(),
      credit_balance_after: after.toFixed(),
      credits_available: credits.toFixed(),
    },
  };
}
