/**
 * Accounts of the credit ledger (docs/rules/wallets.md, "The ledger"). The balance of a wallet is its lots less its overdraft. The sources
 * and uses of credits have counter accounts, so every movement sums to 0.
 */
import type { TransactionReason } from './record.ts';

const HOLDINGS = ['lot', 'overdraft'] as const;
const COUNTER_ACCOUNTS = ['purchased', 'granted', 'refunded', 'spent', 'debited', 'expired', 'written_off'] as const;
export type CounterAccount = (typeof COUNTER_ACCOUNTS)[number];
export type Account = (typeof HOLDINGS)[number] | CounterAccount;

/** Counter account by reason: the source of the credits, or their use. */
export const ACCOUNT_BY_REASON: Readonly<Record<TransactionReason, CounterAccount>> = {
  PURCHASED_CREDIT_INVOICED: 'purchased',
  PURCHASED_CREDIT_DIRECT: 'purchased',
  PURCHASED_CREDIT_BONUS: 'granted',
  FREE_CREDIT_GRANT: 'granted',
  SUBSCRIPTION_CREDIT_GRANT: 'granted',
  CREDIT_NOTE: 'refunded',
  INVOICE_VOID_REFUND: 'refunded',
  INVOICE_PAYMENT: 'spent',
  CREDIT_ADJUSTMENT: 'spent',
  MANUAL_BALANCE_DEBIT: 'debited',
  CREDIT_EXPIRED: 'expired',
  WALLET_TERMINATION: 'written_off',
};
