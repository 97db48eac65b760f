/** Locks a wallet until the transaction ends, and checks that its credits may be changed. */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';

export async function lockWallet(transaction: Transaction, scope: Scope, id: string): Promise<WalletModel> {
  return WalletModel.fetch(scope, id, { database: transaction, lock: true });
}

/** Locks the customer's prepaid wallets first, whatever the wallet's type, because the transaction may need them later. */
export async function lockWalletInOrder(
  transaction: Transaction,
  scope: Scope,
  { id, customer_id }: { id: string; customer_id: string },
): Promise<WalletModel> {
  const prepaid = await WalletModel.lockPrepaidWallets(scope, [customer_id], transaction);
  return prepaid.find((one) => one.id === id) ?? lockWallet(transaction, scope, id);
}

export function checkActive({ id, wallet_status }: WalletModel): void {
  if (wallet_status === 'active') return;
  throw notAllowed(`the wallet is ${wallet_status}`, { wallet_id: id, wallet_status });
}
