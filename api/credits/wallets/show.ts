/** Loads the requested parts of wallets and transactions with one query per part. */

import { loadRealTimeBalance, type RealTimeSnapshot } from '../../../actions/lifecycle/wallets/real-time-balance.ts';
import { Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { loadCustomersById } from '../../catalog/customers/expand.ts';
import type { Context } from '../../http/route.ts';

const WITHOUT = { credits_available_breakdown: null, real_time_balance: null, real_time_credit_balance: null };

export async function showWallets(wallets: readonly WalletModel[], expand: readonly string[], context: Context) {
  const withBreakdown = expand.includes('credits_available_breakdown');
  const breakdowns = withBreakdown ? await loadBreakdowns(wallets, context) : new Map<string, unknown>();
  return wallets.map((wallet) => ({
    ...WITHOUT,
    ...wallet,
    credits_available_breakdown: breakdowns.get(wallet.id) ?? null,
  }));
}

export async function showWallet(wallet: WalletModel, context: Context, expand: readonly string[] = []) {
  const [shown] = await showWallets([wallet], expand, context);
  return shown!;
}

export async function showBalance(
  wallet: WalletModel,
  { expand = [], isRealTime }: { expand?: readonly string[] | undefined; isRealTime: boolean },
  context: Context,
) {
  const shown = await showWallet(wallet, context, expand);
  if (!isRealTime)
    return {
      ...shown,
      balance_updated_at: null,
      current_period_usage: null,
      unpaid_invoices_amount: null,
      as_of: null,
      is_cached_fallback: false,
    };
  return showRealTimeBalance(shown, await loadRealTimeBalance(context.services, wallet, context.now), context.now);
}

export function showRealTimeBalance<Shown extends object>(shown: Shown, realTime: RealTimeSnapshot, now: Date) {
  return { ...shown, ...realTime, balance_updated_at: now.toISOString(), is_cached_fallback: false };
}

/** Balance answer of a cached wallet; `moment` holds the values that change with usage and time. */
export function showCachedBalance(wallet: WalletModel, moment: object): object {
  return { ...wallet, ...WITHOUT, ...moment, is_cached_fallback: false };
}

async function loadBreakdowns(wallets: readonly WalletModel[], { scope, services }: Context) {
  const lots = await WalletTransactionModel.in(scope, services.postgres)
    .where('credits_available', '>', 0)
    .where('type', 'credit')
    .whereIn(
      'wallet_id',
      wallets.map(({ id }) => id),
    );
  const byWallet = groupBy(lots, ({ wallet_id }) => wallet_id);
  return new Map<string, unknown>(wallets.map(({ id }) => [id, computeBreakdown(byWallet.get(id) ?? [])]));
}

const BOUGHT: readonly string[] = ['PURCHASED_CREDIT_INVOICED', 'PURCHASED_CREDIT_DIRECT'];

function computeBreakdown(lots: readonly WalletTransactionModel[]) {
  const sum = (of: readonly WalletTransactionModel[]) =>
    of.reduce((total, { credits_available }) => total.plus(credits_available), new Decimal(ZERO)).toFixed();
  const isBought = ({ transaction_reason }: WalletTransactionModel) => BOUGHT.includes(transaction_reason);
  return { purchased: sum(lots.filter(isBought)), free: sum(lots.filter((lot) => !isBought(lot))) };
}

export async function showTransactions(
  transactions: readonly WalletTransactionModel[],
  expand: readonly string[],
  context: Context,
) {
  const { scope, services } = context;
  const customers = expand.includes('customer') ? await loadCustomersById(transactions, context) : new Map();
  const users = expand.includes('created_by_user')
    ? await UserModel.byId(
        scope.tenant_id,
        transactions.map(({ created_by }) => created_by),
        services.postgres,
      )
    : new Map();
  const wallets = expand.includes('wallet')
    ? await WalletModel.byId(
        scope,
        transactions.map(({ wallet_id }) => wallet_id),
        services.postgres,
      )
    : new Map();
  return transactions.map((one) => ({
    ...one,
    customer: customers.get(one.customer_id) ?? null,
    created_by_user: users.get(one.created_by) ?? null,
    wallet: wallets.has(one.wallet_id) ? { ...WITHOUT, ...wallets.get(one.wallet_id) } : null,
  }));
}

export async function showTransaction(one: WalletTransactionModel, context: Context) {
  const [shown] = await showTransactions([one], [], context);
  return shown!;
}
