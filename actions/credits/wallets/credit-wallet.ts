/**
 * Puts an amount or a number of credits into the customer's prepaid wallet in the currency, and creates the wallet if there is none. A
 * repeated request with the same key credits nothing more (docs/rules/wallets.md, "Credits of changes").
 */

import type { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toCredits } from '../../../core/rating/wallet/rates.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { type CustomerCurrency, WalletModel } from '../../../storage/models/credits/wallet.ts';
import type { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { addWallet, type NewWallet } from './add-wallet.ts';
import { type MovementInput, moveCredits } from './move-credits.ts';

type WalletCredit = CustomerCurrency &
  MovementInput &
  (
    | { readonly amount: Decimal; readonly credits?: undefined }
    | { readonly credits: Decimal; readonly amount?: undefined }
  ) & {
    /** Fields of a wallet that has to be created. Default: it pays for all prices, and a credit is one currency unit. */
    readonly wallet?: Partial<NewWallet>;
  };

/** Default of a created wallet: returned credits may come from any charge, so they pay for prices of all types. */
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
