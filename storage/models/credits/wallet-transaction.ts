import { WalletTransaction } from '../../../core/credits/wallet/record.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Lot } from '../../../core/rating/wallet/lots.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface WalletTransactionModel extends WalletTransaction {}

export class WalletTransactionModel extends ScopedModel {
  static override tableName = 'wallet_transactions';
  static override recordName = 'wallet transaction';
  static override record = WalletTransaction;
}

type WalletRef = { readonly id: string; readonly tenant_id: string; readonly environment_id: string };

/** Lists the lots with remaining credits, in the order in which they were added. */
export async function listLots(wallet: WalletRef, database: Database): Promise<WalletTransactionModel[]> {
  return WalletTransactionModel.in(wallet, database)
    .where({ wallet_id: wallet.id, type: 'credit' })
    .where('credits_available', '>', 0)
    .orderBy(['created_at', 'id']);
}

export function toLot(transaction: WalletTransactionModel): Lot {
  const { id, priority = null, expiry_date } = transaction;
  return {
    id,
    credit_amount: new Decimal(transaction.credit_amount),
    available: new Decimal(transaction.credits_available),
    priority,
    expiry_ms: expiry_date ? toInstant(expiry_date) : null,
    created_ms: toInstant(transaction.created_at),
    pays_after_tax: transaction.pays_after_tax,
  };
}
