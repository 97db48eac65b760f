/** Exports the credits and debits of wallets in the range, in the order in which they happened. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { formatUs, toInstant, toUs } from '../../../core/foundation/time/instant.ts';
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
import { type ExportedRange, splitIntoFileParts } from './file-parts.ts';

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

const PAGE = 1_000;

async function* readCredits(
  stores: Stores,
  scope: Scope,
  input: ExportInput & { type: CreditMovementType },
): AsyncGenerator<readonly ExportedCredits[]> {
  for (const part of splitIntoFileParts(scope, input, { kind: 'credits', id: 't.id' }))
    yield* readCreditsPart(stores, scope, { ...input, ...part });
}

async function* readCreditsPart(
  stores: Stores,
  scope: Scope,
  { start_us, end_us, signal, only, type }: ExportInput & ExportedRange & { type: CreditMovementType },
): AsyncGenerator<readonly ExportedCredits[]> {
  const range = { from: formatUs(start_us), to: formatUs(end_us), only, limit: PAGE, database: stores.postgres };
  for (let after: MovedCredits | null = null; ; ) {
    signal.throwIfAborted();
    const moved: MovedCredits[] = await listMovedCredits(scope, { ...range, after });
    yield await loadRecords(stores, scope, { moved, type });
    if (moved.length < PAGE) return;
    after = moved.at(-1)!;
  }
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
