/**
 * Takes credits out manually (docs/rules/wallets.md, "Debits"). Concurrent debits of one wallet share a transaction, which locks the
 * wallet's row once. Each debit is decided on the balance after the one before it and has its own result.
 */

import type { Debit } from '../../../core/credits/wallet/request.ts';
import { FarthingError, invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { listExpiries, type PromisedCredits } from '../../../core/rating/wallet/promises.ts';
import { checkCredits } from '../../../core/rating/wallet/rates.ts';
import { KeyedBatchLoader } from '../../../storage/concurrency/batch-loader.ts';
import { currentRequestContext, runAs } from '../../../storage/foundation/request-context.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import type { WalletModel } from '../../../storage/models/credits/wallet.ts';
import type { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { loadHeldAfterExpiry, loadPromised, toWalletPool } from '../../../storage/models/reservations/reservation.ts';
import { checkActive, lockWallet } from './lock-wallet.ts';
import { type CreditMovement, loadHolding, moveAll, restoreWallet } from './move-credits.ts';

type DebitResult = {
  /** The wallet with its balances after this debit. */
  readonly wallet: WalletModel;
  readonly wallet_transaction: WalletTransactionModel;
};
type DebitCall = {
  readonly scope: Scope;
  readonly id: string;
  readonly entry: CreditMovement;
  readonly caller: ReturnType<typeof currentRequestContext>;
};

const AT_ONCE_MAX = 500;
const BATCH_PAUSE_MAX_MS = 5;
const DEBIT_BATCHES = new KeyedBatchLoader<Database, DebitCall, DebitResult | FarthingError>(debitBatch, {
  batchMax: AT_ONCE_MAX,
  restMax_ms: BATCH_PAUSE_MAX_MS,
});

export async function debitWallet(
  { postgres }: Stores,
  scope: Scope,
  { id, request, author }: { id: string; request: Debit; author: Author },
): Promise<DebitResult> {
  if (request.transaction_reason !== 'MANUAL_BALANCE_DEBIT')
    throw invalid('transaction_reason', `${request.transaction_reason} is not a debit by hand`, {
      allowed: ['MANUAL_BALANCE_DEBIT'],
    });
  const credits = checkCredits('credits', request.credits);
  const entry: CreditMovement = {
    movement: { kind: 'spend', credits, at_ms: author.now.getTime(), allow_negative: request.allow_negative },
    transaction_reason: 'MANUAL_BALANCE_DEBIT',
    reference_type: 'REQUEST',
    reference_id: request.idempotency_key,
    idempotency_key: request.idempotency_key,
    description: request.description ?? '',
    metadata: request.metadata,
    author,
  };
  const caller = currentRequestContext();
  // A batch contains the debits of one caller only: its changes are attributed to that caller.
  const alike = [scope.tenant_id, scope.environment_id, id, author.user_id, caller?.secret_id, caller?.clock?.now];
  const debited = await DEBIT_BATCHES.load(postgres, { scope, id, entry, caller }, JSON.stringify(alike));
  if (debited instanceof FarthingError) throw debited;
  return debited;
}

async function debitBatch(postgres: Database, calls: readonly DebitCall[]): Promise<(DebitResult | FarthingError)[]> {
  const { scope, id, caller } = calls[0]!;
  const work = () =>
    postgres.transaction(async (transaction) => {
      const wallet = await lockWallet(transaction, scope, id);
      const { now } = calls[0]!.entry.author;
      const { held } = await loadHeldAfterExpiry(transaction, toWalletPool(wallet), now);
      const promised = held.isZero() ? [] : await loadWalletPromised(transaction, wallet, now);
      const { moved, wallet: after } = await moveAll(
        transaction,
        wallet,
        calls.map(({ entry }) => withPromised(entry, promised)),
        checkActive,
      );
      return moved.map((one) =>
        one instanceof FarthingError
          ? one
          : { wallet: restoreWallet(after, one.transaction), wallet_transaction: one.transaction },
      );
    });
  if (!caller) return work();
  const request_id = calls.length === 1 ? caller.request_id : null;
  return runAs({ ...caller, request_id }, work);
}

async function loadWalletPromised(
  transaction: Transaction,
  wallet: WalletModel,
  now: Date,
): Promise<PromisedCredits[]> {
  const { lots } = await loadHolding(transaction, wallet);
  return loadPromised(transaction, toWalletPool(wallet), { now, expiries: listExpiries(lots) });
}

/** Adds the reserved credits to a movement that spends, because a debit cannot spend them. */
function withPromised(entry: CreditMovement, promised: readonly PromisedCredits[]): CreditMovement {
  const { movement } = entry;
  return movement.kind === 'spend' ? { ...entry, movement: { ...movement, promised } } : entry;
}
