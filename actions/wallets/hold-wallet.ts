/** A wallet that is held for the rest of the transaction, and that credits can be put into and taken out of. */
import { notAllowed } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { WalletModel } from '../../storage/models/wallet.ts';
import type { Transaction } from '../../storage/stores.ts';

export async function holdWallet(transaction: Transaction, scope: Scope, id: string): Promise<WalletModel> {
  return WalletModel.fetch(scope, id, { database: transaction, lock: true });
}

export function checkActive({ id, wallet_status }: WalletModel): void {
  if (wallet_status === 'active') return;
  throw notAllowed(`the wallet is ${wallet_status}`, { wallet_id: id, wallet_status });
}
