/**
 * Fills a wallet by itself (docs/rules/wallets.md, "Filled by itself"): with credits at once, or with an invoice that brings them when it is
 * paid. What is decided is decided under the lock on the wallet, so that two who look at one time do not fill it twice.
 */
import { Decimal } from '../../core/decimal.ts';
import { roundMoney } from '../../core/money.ts';
import type { Scope } from '../../core/scope.ts';
import { computeTopupCount } from '../../core/wallet/auto-topup.ts';
import { computeBonus } from '../../core/wallet/bonus.ts';
import { toOwnKey } from '../../core/wallet/movement-key.ts';
import type { AutoTopup } from '../../core/wallet/record.ts';
import type { DueEnvironments, DueRecord } from '../../storage/due-billing.ts';
import { listCustomerWalletsWithAutoTopUp, listWalletsWithAutoTopUp } from '../../storage/due-wallets.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { loadSetting } from '../../storage/models/setting.ts';
import { WalletModel } from '../../storage/models/wallet.ts';
import { WalletTransactionModel } from '../../storage/models/wallet-transaction.ts';
import { newId } from '../../storage/new-id.ts';
import { retryTransaction } from '../../storage/postgres/deadlock-retry.ts';
import type { Stores, Transaction } from '../../storage/stores.ts';
import { runBatches } from '../billing/batch-loop.ts';
import { lockWalletInOrder } from './lock-wallet.ts';
import { moveAll } from './move-credits.ts';
import { loadRealTimeBalance } from './real-time-balance.ts';
import { buildMovements, buyWithInvoice, type TopUpPlan } from './top-up.ts';

/** For people: a caller may say the same of a purchase of its own, so nothing goes by it. */
const METADATA = { auto_topup: 'true' };

type AutoTopUpReport = { filled: number; failed: { id: string; error: unknown }[] };

export async function topUpDueWallets(
  stores: Stores,
  { now, only }: { now: Date } & DueEnvironments,
): Promise<AutoTopUpReport> {
  const report: AutoTopUpReport = { filled: 0, failed: [] };
  const act = async ({ id, ...scope }: DueRecord) => {
    try {
      report.filled += await autoTopUp(stores, scope, { id, now });
    } catch (error) {
      report.failed.push({ id, error });
    }
    // Each is looked at once in a run.
    return false;
  };
  await runBatches({ next: (left) => listWalletsWithAutoTopUp(stores.postgres, { left, only }), act, workers: 1 });
  return report;
}

/** Those of a customer whose usage has grown, or one of whose wallets has moved. */
export async function topUpCustomer(
  stores: Stores,
  scope: Scope,
  { customer_id, now }: { customer_id: string; now: Date },
): Promise<void> {
  for (const id of await listCustomerWalletsWithAutoTopUp(stores.postgres, scope, customer_id))
    await autoTopUp(stores, scope, { id, now });
}

/** What moves so often that it does not stand still for one look is taken as it moved. */
const ATTEMPTS = 3;

/** How often it was filled. What paid an invoice in between was owed before, so whoever finds the credits moved looks anew. */
export async function autoTopUp(stores: Stores, scope: Scope, input: { id: string; now: Date }): Promise<number> {
  for (let attempts = 1; ; attempts++) {
    const times = await tryTopUp(stores, scope, { ...input, isLast: attempts === ATTEMPTS });
    if (times !== null) return times;
  }
}

type TopUpAttempt = { readonly id: string; readonly now: Date; readonly isLast: boolean };

async function tryTopUp(stores: Stores, scope: Scope, { id, now, isLast }: TopUpAttempt): Promise<number | null> {
  const seen = await WalletModel.fetch(scope, id, { database: stores.postgres });
  if (!seen.auto_topup?.enabled) return 0;
  const before = await loadRealTimeBalance(stores, seen, now);
  const attempt = async (transaction: Transaction) => {
    await CustomerModel.fetch(scope, seen.customer_id, { database: transaction, lock: true });
    const wallet = await lockWalletInOrder(transaction, scope, seen);
    if (wallet.wallet_status !== 'active' || !wallet.auto_topup) return 0;
    const since = new Decimal(wallet.credit_balance).minus(seen.credit_balance);
    if (!since.isZero() && !isLast) return null;
    const credits = since.plus(before.real_time_credit_balance);
    const times = computeTopupCount(wallet.auto_topup, {
      ...(await loadTopUpHistory(transaction, wallet)),
      credits,
      now,
    });
    if (times > 0) await topUp(transaction, wallet, { auto_topup: wallet.auto_topup, times, now });
    return times;
  };
  return retryTransaction(stores, attempt);
}

/**
 * By its key, which no caller can state. What was filled before such keys were made has one of a request without a key, which many have: it was written by nobody,
 * as nothing is that somebody asks for.
 */
const FILLED = [
  `(starts_with(idempotency_key, ?) or (metadata @> ? and created_by = '' and (starts_with(idempotency_key, ?) or starts_with(idempotency_key, 'request/'))))`,
  [toOwnKey('auto_topup', ''), JSON.stringify(METADATA), toOwnKey('request', '')],
] as const;

async function loadTopUpHistory(transaction: Transaction, wallet: WalletModel) {
  const [last] = await WalletTransactionModel.in(wallet, transaction)
    .where({ wallet_id: wallet.id, type: 'credit' })
    .whereRaw(...FILLED)
    .orderBy('created_at', 'desc')
    .limit(1);
  const [pending] = await WalletTransactionModel.in(wallet, transaction)
    .where({ wallet_id: wallet.id, transaction_status: 'pending' })
    .whereRaw(...FILLED)
    .limit(1);
  const [unpaid] = await InvoiceModel.in(wallet, transaction)
    .where({ customer_id: wallet.customer_id, billing_reason: 'WALLET_AUTO_TOPUP', invoice_status: 'FINALIZED' })
    .where('amount_remaining', '>', 0)
    .whereRaw('metadata @> ?', [JSON.stringify({ wallet_id: wallet.id })])
    .limit(1);
  return { last_at: last ? new Date(last.created_at) : null, isWaiting: Boolean(pending ?? unpaid) };
}

type TopUpInput = { readonly auto_topup: AutoTopup; readonly times: number; readonly now: Date };

async function topUp(
  transaction: Transaction,
  wallet: WalletModel,
  { auto_topup, times, now }: TopUpInput,
): Promise<void> {
  const author = { user_id: '', now };
  const credits = new Decimal(auto_topup.amount);
  const config = await loadSetting(wallet, 'bonus_credits_topup_config', transaction);
  const plans = Array.from(
    { length: times },
    (): TopUpPlan => ({
      reason: auto_topup.invoicing ? 'PURCHASED_CREDIT_INVOICED' : 'PURCHASED_CREDIT_DIRECT',
      key: toOwnKey('auto_topup', newId('request', now.getTime())),
      credits,
      price: roundMoney(credits.times(wallet.topup_conversion_rate), wallet.currency),
      expiry_date: null,
      bonus: computeBonus(credits, config, now),
      request: { priority: null, description: 'Filled by itself', metadata: METADATA },
    }),
  );
  if (auto_topup.invoicing) {
    for (const plan of plans) await buyWithInvoice(transaction, wallet, { ...plan, author, isAutomatic: true });
    return;
  }
  const entries = plans.flatMap((plan) =>
    buildMovements({ ...plan, author }, { reference_type: 'EXTERNAL', reference_id: plan.key }),
  );
  const { moved } = await moveAll(transaction, wallet, entries);
  const refused = moved.find((one) => one instanceof Error);
  if (refused) throw refused;
}
