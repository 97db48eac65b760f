/** Table `wallet_transactions`. */
import { WalletTransaction } from '../../core/wallet/record.ts';
import { ScopedModel } from './model.ts';

export interface WalletTransactionModel extends WalletTransaction {}

export class WalletTransactionModel extends ScopedModel {
  static override tableName = 'wallet_transactions';
  static override recordName = 'wallet transaction';
  static override record = WalletTransaction;
}
