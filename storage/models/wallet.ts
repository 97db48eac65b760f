/** Table `wallets`. */
import type { Scope } from '../../core/scope.ts';
import { Wallet } from '../../core/wallet/record.ts';
import type { Database } from '../stores.ts';
import { ScopedModel } from './model.ts';

export interface WalletModel extends Wallet {}

/** Whose credits in which currency. */
export type CustomerCurrency = { readonly customer_id: string; readonly currency: string };

/** Advisory locks of this kind, told from those of others by this number. */
const WALLETS = 13_001;

export class WalletModel extends ScopedModel {
  static override tableName = 'wallets';
  static override recordName = 'wallet';
  static override record = Wallet;

  /** Those whose alerts are on, or off; one without settings of its own goes by those of its environment (docs/rules/alerts.md). */
  static alerting(scope: Scope, { on, by_default }: { on: boolean; by_default: boolean }, database: Database) {
    return WalletModel.in(scope, database).where((either) => {
      // By the index of what is contained.
      void either.whereRaw('alert_settings @> ?::jsonb', JSON.stringify({ alert_enabled: on }));
      if (on === by_default) void either.orWhereNull('alert_settings');
    });
  }

  /** What lowers the invoices of these customers, in whatever currency. */
  static buildPrepaidQuery(scope: Scope, customer_ids: readonly string[], database: Database) {
    return WalletModel.in(scope, database)
      .whereIn('customer_id', [...customer_ids])
      .where({ wallet_type: 'PRE_PAID', wallet_status: 'active', status: 'published' });
  }

  /**
   * All of them, in the one order in which wallets are held, so that nobody waits for another in a circle (docs/rules/wallets.md, "Who waits for whom"). Whoever needs
   * another of theirs as well, which is postpaid or closed, takes it behind them; whoever needs one alone, and no other in the same transaction, takes that alone.
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
   * The one into which credits go, held for the rest of the transaction with the others that may have to pay in it: while there is none, so is its place. Where there is
   * one the rows alone: whoever holds rows already would wait for who holds the place and waits for them.
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
