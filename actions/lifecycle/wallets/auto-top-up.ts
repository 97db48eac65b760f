/**
 * Tops up a wallet automatically (docs/rules/wallets.md, "Automatic top-up"): with credits at once, or with an invoice whose payment brings
 * the credits. The decision is made under the wallet's row lock, so concurrent runs do not top it up twice.
 */

import { computeTopupCount } from '../../../core/credits/wallet/auto-topup.ts';
import { computeBonus } from '../../../core/credits/wallet/bonus.ts';
import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import type { AutoTopup } from '../../../core/credits/wallet/record.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { roundMoney } from '../../../core/foundation/money.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import type { DueEnvironments, DueRecord } from '../../../storage/queue/due-billing.ts';
import { listCustomerWalletsWithAutoTopUp, listWalletsWithAutoTopUp } from '../../../storage/queue/due-wallets.ts';
import { lockWalletInOrder } from '../../credits/wallets/lock-wallet.ts';
import { moveAll } from '../../credits/wallets/move-credits.ts';
import { runBatches } from '../../foundation/batch-loop.ts';
import { loadRealTimeBalance } from './real-time-balance.ts';
import { buildMovements, buyWithInvoice, type TopUpPlan } from './top-up.ts';

/** The metadata is for information only. Callers may set the same metadata on their own purchases, so no decision depends on it alone. */
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
    // False excludes the wallet from the rest of this run, so each wallet is checked once.
    return false;
  };
  await runBatches({ next: (left) => listWalletsWithAutoTopUp(stores.postgres, { left, only }), act, workers: 1 });
  return report;
}

/** Tops up the wallets of a customer after their usage grew or the credits of a wallet changed. */
export async function topUpCustomer(
  stores: Stores,
  scope: Scope,
  { customer_id, now }: { customer_id: string; now: Date },
): Promise<void> {
  for (const id of await listCustomerWalletsWithAutoTopUp(stores.postgres, scope, customer_id))
    await autoTopUp(stores, scope, { id, now });
}

/**
 * Maximum number of reads of a balance, which is read again if credits change before the wallet is locked. At the last attempt, credits
 * that changed since the read are added to the balance instead.
 */
const ATTEMPTS = 3;

/** Returns the number of top-ups. If the wallet's credits changed after the balance was read, the attempt restarts from a new read. */
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
 * Automatic top-ups are found by their key, which no caller can set. Top-ups of earlier releases have a generated request key, as many
 * transactions do; these are recognized by the metadata and by an empty `created_by`, which no caller's request has.
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
