/**
 * Tables `ledger_transactions` and `ledger_postings`: written once and never changed. Their trigger is what changes the lots and the
 * balances of wallets (docs/decisions/0019-ledger.md).
 */

import type { Scope } from '../../core/scope.ts';
import type { Posting } from '../../core/wallet/movement.ts';
import type { Transaction } from '../stores.ts';
import { ScopedModel } from './model.ts';

export class LedgerTransactionModel extends ScopedModel {
  static override tableName = 'ledger_transactions';
  static override recordName = 'ledger transaction';
  static override isAudited = false as const;
}

export class LedgerPostingModel extends ScopedModel {
  static override tableName = 'ledger_postings';
  static override recordName = 'ledger posting';
  static override isAudited = false as const;
  static override idColumn = ['transaction_id', 'position'];
  declare transaction_id: string;
  declare wallet_id: string;
  declare wallet_transaction_id: string;
  declare account: Posting['account'];
  declare lot_id: string | null;
  declare credits: string;
}

/** Of one wallet, told by one of its transactions. */
export type LedgerLine = Posting & { readonly wallet_id: string; readonly wallet_transaction_id: string };
export type LedgerEntry = {
  readonly id: string;
  readonly idempotency_key: string;
  readonly reason: string;
  readonly reference_type: string;
  readonly reference_id: string;
  readonly occurred_at: string;
  readonly lines: readonly LedgerLine[];
};

/** All of them or none; a key that is there already is `already_exists`. Callers hold the wallets' rows. */
export async function post(transaction: Transaction, scope: Scope, entries: readonly LedgerEntry[]): Promise<void> {
  const heads = entries.map(({ lines: _, ...head }) => head);
  const conflict = 'this movement of credits was made already';
  await LedgerTransactionModel.addAll(scope, heads, { database: transaction, conflict });
  const postings = entries.flatMap(({ id, lines }) =>
    lines.map((line, position) => ({ ...line, transaction_id: id, position, credits: line.credits.toFixed() })),
  );
  await LedgerPostingModel.addAll(scope, postings, { database: transaction });
}
