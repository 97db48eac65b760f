/**
 * Compares the real-time balances of a customer's wallets with the thresholds of the wallet and of the features that the customer pays for
 * (docs/rules/alerts.md, "Balances of wallets").
 */

import type { RealTimeBalance } from '../../core/credits/wallet/real-time.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { lockAlerts } from '../../storage/models/alerts/alert-states.ts';
import { FeatureModel } from '../../storage/models/catalog/feature.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import { listWatchedFeatures, loadBalanceWatchers } from '../../storage/queue/due-alerts.ts';
import {
  clearWalletAlertState,
  loadWalletAlertSettings,
  recordCreditBalanceAlert,
  recordWalletAlert,
} from '../credits/balance-alerts/credit-alerts.ts';
import { recordAlertState } from '../credits/balance-alerts/record-alert-state.ts';
import { emit } from '../foundation/emit.ts';
import { loadRealTimeBalance } from '../lifecycle/wallets/real-time-balance.ts';

/** Returns the number of changed states. */
export async function checkWallets(
  stores: Stores,
  scope: Scope,
  { customer_id, now }: { customer_id: string; now: Date },
): Promise<number> {
  const wallets = await WalletModel.in(scope, stores.postgres)
    .where({ customer_id, wallet_status: 'active', status: 'published' })
    .orderBy(['created_at', 'id']);
  let changed = 0;
  for (const { id } of wallets) changed += await checkWallet(stores, scope, { id, now });
  return changed;
}

const AT_A_TIME = 100;

/**
 * Checks a batch of wallets without alert settings of their own, in the order of their ids, after the id `after`. `last` is the last id of
 * the batch, or null if no more wallets follow. An error of one wallet does not stop the others.
 */
export async function checkWalletsWithDefaults(
  stores: Stores,
  scope: Scope,
  { after, now }: { after: string; now: Date },
): Promise<{ last: string | null; errors: unknown[] }> {
  const wallets = await WalletModel.in(scope, stores.postgres)
    .where({ wallet_status: 'active', status: 'published' })
    .whereNull('alert_settings')
    .where('id', '>', after)
    .orderBy('id')
    .limit(AT_A_TIME);
  const errors: unknown[] = [];
  for (const { id } of wallets) await checkWallet(stores, scope, { id, now }).catch((error) => errors.push(error));
  return { last: wallets.length < AT_A_TIME ? null : wallets.at(-1)!.id, errors };
}

/** Checks one wallet. Checks of a wallet are serialized, so an older balance does not override a newer one. */
function checkWallet(stores: Stores, scope: Scope, { id, now }: { id: string; now: Date }): Promise<number> {
  return stores.postgres.transaction(async (transaction) => {
    await lockAlerts(transaction, id);
    const seen = await WalletModel.fetch(scope, id, { database: transaction });
    const watchers = await loadBalanceWatchers(transaction, seen);
    const isWatched = (await loadWalletAlertSettings(transaction, seen, watchers))?.alert_enabled ?? false;
    const watching = watchers.by_feature ? await listWatchedFeatures(transaction, seen) : [];
    if (!isWatched && watching.length === 0 && seen.alert_state === 'ok') return 0;
    const left = await loadRealTimeBalance(stores, seen, now);
    const wallet = await WalletModel.fetch(scope, id, { database: transaction, lock: true });
    if (wallet.wallet_status !== 'active') return 0;
    // Loads the settings again under the wallet's lock. A request that changed them since the check began has compared the credits with
    // them.
    const settings = await loadWalletAlertSettings(transaction, wallet, await loadBalanceWatchers(transaction, wallet));
    const features = await listAlertingFeatures(transaction, wallet, watching);
    const value = new Decimal(left.real_time_credit_balance);
    let changed = 0;
    if (settings?.alert_enabled) {
      const compared = { settings, by: { now } };
      // The credit balance is compared here only with the environment's default, which may have changed. A change of the wallet's own
      // settings, or of its credits, compares it at once.
      const credits = wallet.alert_settings
        ? { wallet, isEmitted: false }
        : await recordCreditBalanceAlert(transaction, { ...compared, wallet });
      const balances = { current_balance: new Decimal(left.real_time_balance), credit_balance: value };
      const alert_type = 'low_ongoing_balance';
      const ongoing = { ...compared, ...balances, wallet: credits.wallet, alert_type, value } as const;
      for (const { isEmitted } of [credits, await recordWalletAlert(transaction, ongoing)]) if (isEmitted) changed += 1;
    } else await clearWalletAlertState(transaction, wallet, { now });
    for (const feature of features)
      if (await recordFeatureAlert(transaction, { feature, wallet, left, now })) changed += 1;
    return changed;
  });
}

async function listAlertingFeatures(
  transaction: Transaction,
  wallet: WalletModel,
  ids: string[],
): Promise<FeatureModel[]> {
  if (ids.length === 0) return [];
  const features = await FeatureModel.in(wallet, transaction).whereIn('id', ids).orderBy('id');
  return features.filter(({ alert_settings }) => alert_settings?.alert_enabled);
}

type FeatureAlertInput = { feature: FeatureModel; wallet: WalletModel; left: RealTimeBalance; now: Date };

async function recordFeatureAlert(
  transaction: Transaction,
  { feature, wallet, left, now }: FeatureAlertInput,
): Promise<boolean> {
  const alert_type = 'feature_wallet_balance' as const;
  const { customer_id } = wallet;
  const compared = {
    alert_type,
    entity_type: 'feature' as const,
    entity_id: feature.id,
    parent_entity_type: 'wallet' as const,
    parent_entity_id: wallet.id,
    customer_id,
    settings: feature.alert_settings!,
    unless: 'below' as const,
    value: new Decimal(left.real_time_credit_balance),
  };
  const change = await recordAlertState(transaction, wallet, { compared, by: { now } });
  if (change === null) return false;
  const also = {
    alert_type,
    alert_status: change.state,
    feature_id: feature.id,
    wallet_id: wallet.id,
    customer_id,
    current_balance: left.real_time_balance,
    credit_balance: left.real_time_credit_balance,
  };
  await emit(transaction, 'feature.wallet_balance.alert', { record: feature, by: { now }, also });
  return true;
}
