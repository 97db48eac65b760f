/** Updates the fields of a wallet that a client sets (docs/rules/wallets.md, "Making a wallet"). */

import { checkFilling, checkWalletSettings, type UpdateWallet } from '../../../core/credits/wallet/request.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { emit } from '../../foundation/emit.ts';
import { checkCreditAlerts } from '../balance-alerts/credit-alerts.ts';
import { checkActive, lockWallet } from './lock-wallet.ts';

export async function changeWallet(
  stores: Stores,
  scope: Scope,
  { id, request, author }: { id: string; request: UpdateWallet; author: Author },
): Promise<WalletModel> {
  checkWalletSettings(request);
  return stores.postgres.transaction(async (transaction) => {
    const wallet = await lockWallet(transaction, scope, id);
    checkActive(wallet);
    checkFilling(request.auto_topup, wallet);
    const { description, ...others } = request;
    const changes = { ...others, ...(description === undefined ? {} : { description: description ?? '' }) };
    const changed = await WalletModel.change(wallet, changes, { by: author, database: transaction });
    if (changed !== wallet) await emit(transaction, 'wallet.updated', { record: changed, by: author });
    return request.alert_settings === undefined ? changed : checkCreditAlerts(transaction, changed, author);
  });
}
