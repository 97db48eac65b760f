/**
 * Tables `ledger_transactions` and `ledger_postings`: append-only. Their trigger updates the lots and the balances of wallets
 * (docs/decisions/0014-credit-ledger.md).
 */

import type { Posting } from '../../../core/credits/wallet/movement.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database, Transaction } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import type { SqlCondition } from '../foundation/page.ts';

class LedgerTransactionModel extends ScopedModel {
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

/** A posting to a wallet, for one of the wallet's transactions. */
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

/** Posts entries to the ledger, all or none; an existing key is `already_exists`. Callers hold the locks of the wallets' rows. */
export async function post(transaction: Transaction, scope: Scope, entries: readonly LedgerEntry[]): Promise<void> {
  const heads = entries.map(({ lines: _, ...head }) => head);
  const conflict = 'this movement of credits was made already';
  await LedgerTransactionModel.addAll(scope, heads, { database: transaction, conflict });
  const postings = entries.flatMap(({ id, lines }) =>
    lines.map((line, position) => ({ ...line, transaction_id: id, position, credits: line.credits.toFixed() })),
  );
  await LedgerPostingModel.addAll(scope, postings, { database: transaction });
}

/**
 * Returns the credits that a wallet transaction added to its lot. The remaining credits of the transaction repaid an
 * overdraft.
 */
export async function putInto(lot: Scope & { readonly id: string }, database: Database): Promise<Decimal> {
  const [posted] = await LedgerPostingModel.in(lot, database)
    .where({ lot_id: lot.id, wallet_transaction_id: lot.id, account: 'lot' })
    .sum('credits as credits');
  return new Decimal(posted!.credits ?? 0);
}

/** A transaction of a wallet, with the instant at which it took effect. */
export type MovedCredits = {
  readonly ledger_transaction_id: string;
  readonly wallet_transaction_id: string;
  readonly occurred_at: string;
};

/** Instants are RFC 3339; the end is exclusive. Returns at most `limit` transactions after `after`. */
type MovedCreditsQuery = {
  readonly from: string;
  readonly to: string;
  /** A further condition with its bindings. */
  readonly only?: SqlCondition | undefined;
  readonly after: MovedCredits | null;
  readonly limit: number;
  readonly database: Database;
};

/** Lists wallet transactions in the order of their instants. Each appears once, for any number of postings. */
export async function listMovedCredits(scope: Scope, { from, to, only, after, limit, database }: MovedCreditsQuery) {
  const { tenant_id, environment_id } = scope;
  const behind = after ? `and (t.occurred_at, t.id, p.wallet_transaction_id) > (?, ?, ?)` : '';
  const [condition, bound] = only ?? ['true', []];
  const { rows } = await database.raw(
    `select t.id as ledger_transaction_id, p.wallet_transaction_id, t.occurred_at
       from ledger_transactions t
       join ledger_postings p on p.tenant_id = t.tenant_id and p.environment_id = t.environment_id and p.transaction_id = t.id
      where t.tenant_id = ? and t.environment_id = ?
        and t.occurred_at >= ? and t.occurred_at < ? and ${condition} ${behind}
      group by t.occurred_at, t.id, p.wallet_transaction_id
      order by t.occurred_at, t.id, p.wallet_transaction_id limit ?`,
    [tenant_id, environment_id, from, to, ...bound, ...toCursor(after), limit],
  );
  return rows as MovedCredits[];
}

function toCursor(after: MovedCredits | null): string[] {
  return after ? [after.occurred_at, after.ledger_transaction_id, after.wallet_transaction_id] : [];
}
