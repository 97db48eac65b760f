/** Creates an empty wallet; its first credits are a separate movement (docs/rules/wallets.md, "Making a wallet"). */

import type { Wallet } from '../../../core/credits/wallet/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { type CustomerCurrency, WalletModel } from '../../../storage/models/credits/wallet.ts';
import { emit } from '../../foundation/emit.ts';

export type NewWallet = Pick<
  Wallet,
  | 'wallet_type'
  | 'name'
  | 'description'
  | 'conversion_rate'
  | 'topup_conversion_rate'
  | 'price_unit'
  | 'config'
  | 'auto_topup'
  | 'alert_settings'
  | 'metadata'
>;

/** Fails with `already_exists` if the customer has an active wallet of this type in this currency. */
export async function addWallet(
  transaction: Transaction,
  scope: Scope,
  { author, ...fields }: CustomerCurrency & Partial<NewWallet> & { author: Author },
): Promise<WalletModel> {
  const { wallet_type = 'PRE_PAID', currency } = fields;
  const record = {
    ...createdBy(author),
    id: newId('wallet', author.now.getTime()),
    name: `${wallet_type === 'PRE_PAID' ? 'Prepaid' : 'Postpaid'} wallet, ${currency.toUpperCase()}`,
    description: '',
    wallet_type,
    wallet_status: 'active',
    balance: '0',
    credit_balance: '0',
    conversion_rate: '1',
    topup_conversion_rate: fields.conversion_rate ?? '1',
    config: { allowed_price_types: [wallet_type === 'PRE_PAID' ? 'USAGE' : 'ALL'] },
    alert_state: 'ok',
    version: 1,
    ...fields,
  };
  const conflict = `the customer has an active ${wallet_type} wallet in ${currency} already`;
  const wallet = await WalletModel.add(scope, record, { database: transaction, conflict });
  await emit(transaction, 'wallet.created', { record: wallet, by: author });
  return wallet;
}
