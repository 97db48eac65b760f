/**
 * Puts an amount, or so many credits, into the customer's prepaid wallet in its currency, which is made when there is none: one key is
 * one credit, whoever asks twice (docs/rules/wallets.md, "Credits of changes").
 */
import type { Decimal } from '../../core/decimal.ts';
import type { Scope } from '../../core/scope.ts';
import { toCredits } from '../../core/wallet/rates.ts';
import { type CustomerCurrency, WalletModel } from '../../storage/models/wallet.ts';
import type { WalletTransactionModel } from '../../storage/models/wallet-transaction.ts';
import type { Transaction } from '../../storage/stores.ts';
import { addWallet, type NewWallet } from './add-wallet.ts';
import { type MovementInput, moveCredits } from './move-credits.ts';

export type WalletCredit = CustomerCurrency &
  MovementInput &
  (
    | { readonly amount: Decimal; readonly credits?: undefined }
    | { readonly credits: Decimal; readonly amount?: undefined }
  ) & {
    /** What a wallet is made with, where there is none: for all prices, and a unit for a credit, unless stated. */
    readonly wallet?: Partial<NewWallet>;
  };

/** What was paid for whatever charge pays for any. */
const FOR_ALL: Partial<NewWallet> = { config: { allowed_price_types: ['ALL'] } };

export async function creditWallet(
  transaction: Transaction,
  scope: Scope,
  { amount, credits, customer_id, currency, wallet: walletFields, ...saying }: WalletCredit,
): Promise<WalletTransactionModel> {
  const purse = { customer_id, currency };
  const wallet =
    (await WalletModel.lockPrepaidWallet(scope, purse, transaction)) ??
    (await addWallet(transaction, scope, { ...FOR_ALL, ...walletFields, ...purse, author: saying.author }));
  const movement = {
    kind: 'credit' as const,
    credits: credits ?? toCredits(amount, wallet.conversion_rate),
    amount,
  };
  return (await moveCredits(transaction, wallet, { ...saying, movement })).transaction;
}
