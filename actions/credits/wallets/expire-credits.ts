/** Takes expired credits out of their wallet (docs/rules/wallets.md, "Expiry"). */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import type { DueEnvironments, DueRecord } from '../../../storage/queue/due-billing.ts';
import { isExpiredLot, listExpiredLots } from '../../../storage/queue/due-wallets.ts';
import { type Interruptible, runBatches } from '../../foundation/batch-loop.ts';
import { lockWallet } from './lock-wallet.ts';
import { moveCredits } from './move-credits.ts';

type ExpireCreditsReport = { expired: number; failed: { id: string; error: unknown }[] };

export async function expireCredits(
  stores: Stores,
  { now, only, mayGoOn }: { now: Date } & DueEnvironments & Interruptible,
): Promise<ExpireCreditsReport> {
  const report: ExpireCreditsReport = { expired: 0, failed: [] };
  const act = async ({ id, ...scope }: DueRecord) => {
    try {
      const isExpired = await expireOne(stores, scope, { id, now });
      if (isExpired) report.expired += 1;
      return isExpired;
    } catch (error) {
      report.failed.push({ id, error });
      return false;
    }
  };
  await runBatches({ next: (left) => listExpiredLots(stores.postgres, { now, left, only }), act, workers: 1, mayGoOn });
  return report;
}

async function expireOne({ postgres }: Stores, scope: Scope, { id, now }: { id: string; now: Date }): Promise<boolean> {
  return postgres.transaction(async (transaction) => {
    const { wallet_id } = await WalletTransactionModel.fetch(scope, id, { database: transaction });
    const wallet = await lockWallet(transaction, scope, wallet_id);
    // The expiry is checked again under the wallet's lock: the lot may have been used meanwhile, or a voided invoice returned credits and
    // may be billed again.
    if (!(await isExpiredLot(transaction, scope, { id, now }))) return false;
    const lot = await WalletTransactionModel.fetch(scope, id, { database: transaction });
    const credits = new Decimal(lot.credits_available);
    // Credits that an invoice returns to an expired lot expire again, so the key contains the number of earlier expiries.
    const before = await WalletTransactionModel.in(scope, transaction).select('id').where({
      parent_transaction_id: id,
      transaction_reason: 'CREDIT_EXPIRED',
    });
    await moveCredits(transaction, wallet, {
      movement: { kind: 'take', parts: [{ lot_id: id, credits }] },
      transaction_reason: 'CREDIT_EXPIRED',
      reference_type: 'EXTERNAL',
      reference_id: id,
      parent_transaction_id: id,
      idempotency_key: toOwnKey('expired', id, String(before.length)),
      description: 'The credits have expired',
      metadata: null,
      author: { user_id: '', now },
    });
    return true;
  });
}
