import { Wallet } from '../../../core/credits/wallet/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface WalletModel extends Wallet {}

/** The credits of a customer in one currency. */
export type CustomerCurrency = { readonly customer_id: string; readonly currency: string };

/** First key of the advisory locks for wallets, distinct from other kinds of locks. */
const WALLETS = 13_001;

export class WalletModel extends ScopedModel {
  static override tableName = 'wallets';
  static override recordName = 'wallet';
  static override record = Wallet;

  /**
   * Query for wallets with alerts on, or off. A wallet without settings of its own uses those of its environment (docs/rules/alerts.md).
   */
  static alerting(scope: Scope, { on, by_default }: { on: boolean; by_default: boolean }, database: Database) {
    return WalletModel.in(scope, database).where((either) => {
      // Written as a containment, which has an index.
      void either.whereRaw('alert_settings @> ?::jsonb', JSON.stringify({ alert_enabled: on }));
      if (on === by_default) void either.orWhereNull('alert_settings');
    });
  }

  /** Wallets that reduce the invoices of these customers, in any currency. */
  static buildPrepaidQuery(scope: Scope, customer_ids: readonly string[], database: Database) {
    return WalletModel.in(scope, database)
      .whereIn('customer_id', [...customer_ids])
      .where({ wallet_type: 'PRE_PAID', wallet_status: 'active', status: 'published' });
  }

  /**
   * Locks all prepaid wallets of these customers in one fixed order, which prevents deadlocks (docs/rules/wallets.md, "Who waits
   * for whom"). A transaction that also needs a postpaid or closed wallet locks it after these. A transaction that needs only one
   * wallet locks only that.
   */
  static async lockPrepaidWallets(
    scope: Scope,
    customer_ids: readonly string[],
    transaction: Database,
  ): Promise<WalletModel[]> {
    const held = WalletModel.buildPrepaidQuery(scope, customer_ids, transaction).orderBy('id').forUpdate();
    return held as unknown as Promise<WalletModel[]>;
  }

  /**
   * Locks the wallet that receives credits, with the others that may pay in this transaction. If there is none, an advisory lock replaces
   * the row lock. If there is one, only rows are locked: a transaction that already holds rows could deadlock with one that holds the
   * advisory lock.
   */
  static async lockPrepaidWallet(
    scope: Scope,
    { customer_id, currency }: CustomerCurrency,
    transaction: Database,
  ): Promise<WalletModel | undefined> {
    const lock = async () => {
      const held = await WalletModel.lockPrepaidWallets(scope, [customer_id], transaction);
      return held.find((one) => one.currency === currency);
    };
    const wallet = await lock();
    if (wallet) return wallet;
    await transaction.raw('select pg_advisory_xact_lock(?, hashtext(?))', [WALLETS, `${customer_id}/${currency}`]);
    return lock();
  }
}

/** The subset of these customers that have a wallet that pays invoices. */
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
