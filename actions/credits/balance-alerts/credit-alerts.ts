/**
 * Compares the credits of a wallet with its alert thresholds in the transaction that changes them, and enqueues the check of its real-time
 * balance (docs/rules/alerts.md, "Balances of wallets").
 */
import { selectWorseState } from '../../../core/catalog/alert/state.ts';
import type { AlertSettings } from '../../../core/catalog/feature/record.ts';
import type { Wallet } from '../../../core/credits/wallet/record.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { deleteAlertState, listAlertStates } from '../../../storage/models/alerts/alert-states.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { enqueueCustomerAlertCheck } from '../../../storage/progress/alert-arrivals.ts';
import { loadBalanceWatchers } from '../../../storage/queue/due-alerts.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';
import { recordAlertState } from './record-alert-state.ts';

type WalletAlert = 'low_credit_balance' | 'low_ongoing_balance';

const EVENTS = {
  low_credit_balance: ['wallet.credit_balance.dropped', 'wallet.credit_balance.recovered'],
  low_ongoing_balance: ['wallet.ongoing_balance.dropped', 'wallet.ongoing_balance.recovered'],
} as const;

/**
 * Checks the alerts of a wallet, which `transaction` has locked. Returns the wallet after the check. An automatic
 * top-up enqueues no further check.
 */
export async function checkCreditAlerts(
  transaction: Transaction,
  wallet: WalletModel,
  by: ChangeAuthor,
  { is_filling = false }: { readonly is_filling?: boolean } = {},
): Promise<WalletModel> {
  const watchers = await loadBalanceWatchers(transaction, wallet);
  const settings = await loadWalletAlertSettings(transaction, wallet, watchers);
  const isWatched = settings?.alert_enabled ?? false;
  const fills = !is_filling && Boolean(wallet.auto_topup?.enabled);
  const isChecked = isWatched || watchers.by_feature || fills;
  const { customer_id } = wallet;
  if (wallet.wallet_status === 'active' && isChecked)
    await enqueueCustomerAlertCheck(transaction, wallet, { customer_id, fills: !is_filling });
  if (!settings || !isWatched) return clearWalletAlertState(transaction, wallet, by);
  return (await recordCreditBalanceAlert(transaction, { wallet, settings, by })).wallet;
}

export function recordCreditBalanceAlert(
  transaction: Transaction,
  { wallet, settings, by }: Pick<WalletAlertComparison, 'wallet' | 'settings' | 'by'>,
): ReturnType<typeof recordWalletAlert> {
  const { balance, credit_balance } = wallet;
  const balances = { current_balance: new Decimal(balance), credit_balance: new Decimal(credit_balance) };
  const alert_type = 'low_credit_balance';
  return recordWalletAlert(transaction, {
    wallet,
    settings,
    alert_type,
    value: balances.credit_balance,
    ...balances,
    by,
  });
}

/** Loads the wallet's own settings or the environment's default; null if neither applies. */
export async function loadWalletAlertSettings(
  transaction: Transaction,
  wallet: Wallet,
  { by_default }: { by_default: boolean },
): Promise<AlertSettings | null> {
  if (wallet.alert_settings) return wallet.alert_settings;
  return by_default ? loadSetting(wallet, 'wallet_balance_alert_config', transaction) : null;
}

/** Clears the alert state of a newly watched wallet: it begins with `ok`, so no recovery is reported that did not happen. */
export async function clearWalletAlertState(
  transaction: Transaction,
  wallet: WalletModel,
  by: ChangeAuthor,
): Promise<WalletModel> {
  if (wallet.alert_state === 'ok') return wallet;
  await deleteWalletAlertStates(transaction, wallet);
  return WalletModel.change(wallet, { alert_state: 'ok' }, { by, database: transaction });
}

/** Deletes the states of a wallet whose balances are no longer watched. */
export async function deleteWalletAlertStates(transaction: Transaction, wallet: WalletModel): Promise<void> {
  for (const alert_type of Object.keys(EVENTS) as WalletAlert[])
    await deleteAlertState(transaction, wallet, { alert_type, entity_id: wallet.id, parent_entity_id: null });
}

type WalletAlertComparison = {
  readonly wallet: WalletModel;
  readonly settings: AlertSettings;
  readonly alert_type: WalletAlert;
  /** Compared value, in credits. */
  readonly value: Decimal;
  /** Balance in money. */
  readonly current_balance: Decimal;
  readonly credit_balance: Decimal;
  readonly by: ChangeAuthor;
};

export async function recordWalletAlert(
  transaction: Transaction,
  { wallet, settings, alert_type, value, current_balance, credit_balance, by }: WalletAlertComparison,
): Promise<{ readonly wallet: WalletModel; readonly isEmitted: boolean }> {
  const compared = {
    alert_type,
    entity_type: 'wallet' as const,
    entity_id: wallet.id,
    parent_entity_type: null,
    parent_entity_id: null,
    customer_id: wallet.customer_id,
    settings,
    unless: 'below' as const,
    value,
  };
  const change = await recordAlertState(transaction, wallet, { compared, by });
  if (change === null) return { wallet, isEmitted: false };
  const states = await listAlertStates(transaction, wallet, wallet.id);
  const alert_state = states.reduce((worst, state) => selectWorseState(worst, state), change.state);
  const changed = await WalletModel.change(wallet, { alert_state }, { by, database: transaction });
  const [dropped, recovered] = EVENTS[alert_type];
  const alert = {
    state: change.state,
    current_balance: current_balance.toFixed(),
    credit_balance: credit_balance.toFixed(),
    alert_type,
    alert_settings: change.settings,
  };
  await emit(transaction, change.state === 'ok' ? recovered : dropped, { record: changed, by, also: { alert } });
  return { wallet: changed, isEmitted: true };
}
