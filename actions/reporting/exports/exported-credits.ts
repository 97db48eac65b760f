/** Exports the credits and debits of wallets in the range, in the order in which they happened. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import {
  CREDIT_TOPUP_COLUMNS,
  CREDIT_USAGE_COLUMNS,
  type ExportedCredits,
} from '../../../core/platform/export/credits.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { listMovedCredits, type MovedCredits } from '../../../storage/models/credits/ledger.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { defineExportKind, type ExportInput, type ExportKind } from './export-kind.ts';
import { readDatedPages } from './pages.ts';

export const creditTopupsExport = defineCreditsExport('credit', CREDIT_TOPUP_COLUMNS);
export const creditUsageExport = defineCreditsExport('debit', CREDIT_USAGE_COLUMNS);

type CreditMovementType = WalletTransactionModel['type'];

function defineCreditsExport(type: CreditMovementType, columns: typeof CREDIT_TOPUP_COLUMNS): ExportKind {
  return defineExportKind<ExportedCredits>({
    reads: ['wallet', 'customer'],
    columns,
    keys: {
      customer_id: ({ transaction }) => transaction.customer_id,
      wallet: ({ transaction }) => transaction.wallet_id,
    },
    rows: (stores, scope, input) => readCredits(stores, scope, { ...input, type }),
  });
}

async function* readCredits(
  stores: Stores,
  scope: Scope,
  { type, ...input }: ExportInput & { type: CreditMovementType },
): AsyncGenerator<readonly ExportedCredits[]> {
  const pages = readDatedPages<MovedCredits>(stores.postgres, scope, {
    input,
    kind: 'credits',
    id: 't.id',
    list: (page) => listMovedCredits(scope, page),
  });
  for await (const moved of pages) yield await loadRecords(stores, scope, { moved, type });
}

async function loadRecords(
  { postgres }: Stores,
  scope: Scope,
  { moved, type }: { moved: readonly MovedCredits[]; type: CreditMovementType },
): Promise<ExportedCredits[]> {
  const ids = moved.map(({ wallet_transaction_id }) => wallet_transaction_id);
  const all = await WalletTransactionModel.byId(scope, ids, postgres);
  const transactions = new Map([...all].filter(([, transaction]) => transaction.type === type));
  const of = [...transactions.values()];
  const customers = await CustomerModel.byId(
    scope,
    of.map(({ customer_id }) => customer_id),
    postgres,
  );
  const wallets = await WalletModel.byId(
    scope,
    of.map(({ wallet_id }) => wallet_id),
    postgres,
  );
  return moved.flatMap(({ wallet_transaction_id, occurred_at }) => {
    const transaction = transactions.get(wallet_transaction_id);
    if (!transaction) return [];
    const customer = customers.get(transaction.customer_id) ?? null;
    const wallet = wallets.get(transaction.wallet_id) ?? null;
    return [{ transaction, moved_at_us: toUs(toInstant(occurred_at)), customer, wallet }];
  });
}
