/** Table `wallets`. */
import type { Scope } from '../../core/scope.ts';
import { Wallet } from '../../core/wallet/record.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

export interface WalletModel extends Wallet {}

/** Whose credits in which currency. */
export type Purse = { readonly customer_id: string; readonly currency: string };

/** Advisory locks of this kind, told from those of others by this number. */
const WALLETS = 13_001;

export class WalletModel extends ScopedModel {
  static override tableName = 'wallets';
  static override recordName = 'wallet';
  static override record = Wallet;

  /**
   * The one into which credits go, held for the rest of the transaction: while there is none, so is its place. Where there is one its row alone: whoever
   * holds rows already would wait for who holds the place and waits for them.
   */
  static async holdPrepaid(
    scope: Scope,
    { customer_id, currency }: Purse,
    transaction: Database,
  ): Promise<WalletModel | undefined> {
    const there = { customer_id, currency, wallet_type: 'PRE_PAID', wallet_status: 'active', status: 'published' };
    const hold = async () => (await WalletModel.in(scope, transaction).where(there).forUpdate())[0];
    const wallet = await hold();
    if (wallet) return wallet;
    await transaction.raw('select pg_advisory_xact_lock(?, hashtext(?))', [WALLETS, `${customer_id}/${currency}`]);
    return hold();
  }
}

/** Of these customers those who have a wallet that pays invoices. */
export async function withPostpaid(
  scope: Scope,
  customer_ids: readonly string[],
  database: Database,
): Promise<Set<string>> {
  const found = await WalletModel.in(scope, database)
    .whereIn('customer_id', [...customer_ids])
    .where({ wallet_type: 'POST_PAID', wallet_status: 'active', status: 'published' })
    .distinct('customer_id');
  return new Set(found.map(({ customer_id }) => customer_id));
}
