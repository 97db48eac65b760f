/**
 * Puts an amount into the customer's prepaid wallet in its currency, which is made when there is none: one key is one
 * credit, whoever asks twice (docs/rules/wallets.md, "Credits of changes").
 */
import type { Decimal } from '../../core/decimal.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { creditOf } from '../../core/wallet/credit.ts';
import type { ReferenceType, TransactionReason, Wallet } from '../../core/wallet/record.ts';
import { type Purse, WalletModel } from '../../storage/models/wallet.ts';
import { WalletTransactionModel } from '../../storage/models/wallet-transaction.ts';
import { newId } from '../../storage/new-id.ts';
import type { Transaction } from '../../storage/stores.ts';

export type Credit = Purse & {
  readonly amount: Decimal;
  readonly transaction_reason: TransactionReason;
  readonly reference_type: ReferenceType;
  readonly reference_id: string;
  readonly idempotency_key: string;
  readonly description: string;
  readonly metadata: Record<string, string> | null;
  /** Credits with a lower one are taken first. */
  readonly priority?: number | null;
  /** Until when it can be used; for ever unless stated. */
  readonly expiry_date?: string | null;
  /** What the wallet is like that is made when there is none. */
  readonly opening?: Pick<Wallet, 'conversion_rate' | 'topup_conversion_rate' | 'config'>;
  readonly author: Author;
};

export async function creditWallet(
  transaction: Transaction,
  scope: Scope,
  credit: Credit,
): Promise<WalletTransactionModel> {
  const wallet = await prepaidWallet(transaction, scope, credit);
  // Behind the lock on the wallet: whoever came first has its transaction there by now.
  const [done] = await WalletTransactionModel.in(scope, transaction).where('idempotency_key', credit.idempotency_key);
  if (done) return done;
  const { amount, customer_id, currency, author, opening: _opening, ...said } = credit;
  const booked = creditOf(wallet, amount);
  const added = await WalletTransactionModel.add(
    scope,
    {
      ...said,
      ...createdBy(author),
      ...booked.transaction,
      id: newId('wallet_transaction', author.now.getTime()),
      wallet_id: wallet.id,
      customer_id,
      currency,
      type: 'credit',
      transaction_status: 'completed',
      conversion_rate: wallet.conversion_rate,
      topup_conversion_rate: wallet.topup_conversion_rate,
    },
    { database: transaction, conflict: 'this credit was given already' },
  );
  await WalletModel.change(wallet, booked.wallet, { by: author, database: transaction });
  return added;
}

/** The lock on the customer's purse is that of its row; who makes it holds it. */
async function prepaidWallet(transaction: Transaction, scope: Scope, credit: Credit): Promise<WalletModel> {
  const { customer_id, currency, author, opening } = credit;
  const wallet = await WalletModel.holdPrepaid(scope, { customer_id, currency }, transaction);
  if (wallet) return wallet;
  const record = {
    ...createdBy(author),
    id: newId('wallet', author.now.getTime()),
    customer_id,
    currency,
    name: `Prepaid wallet, ${currency.toUpperCase()}`,
    description: '',
    wallet_type: 'PRE_PAID',
    wallet_status: 'active',
    balance: '0',
    credit_balance: '0',
    conversion_rate: '1',
    topup_conversion_rate: '1',
    ...opening,
    alert_state: 'ok',
    version: 1,
  };
  const conflict = 'the wallet of this customer was made in between: try again';
  return WalletModel.add(scope, record, { database: transaction, conflict });
}
