/**
 * Trial balance of the credit ledger: postings against lots, wallets and wallet transactions. Each query is one statement, so it reads one
 * snapshot while credits change. Queries are for all tenants or for some wallets.
 */
import type { Database } from '../foundation/stores.ts';
import { type AuditFault, findFaults } from './questions.ts';

/** `found` is the posted amount. */
export type CreditFault = AuditFault<'credits_unbalanced' | 'lot_differs' | 'wallet_differs' | 'movement_differs'>;

/** Null selects all wallets. */
export type Wallets = readonly string[] | null;

const isSelectedWallet = (column: string) => `(:wallets::text[] is null or ${column} = any(:wallets::text[]))`;

const QUESTIONS: Readonly<Record<CreditFault['kind'], string>> = {
  credits_unbalanced: `
    select t.id, '0' as stored, coalesce(sum(p.credits)::text, 'nothing') as found
      from ledger_transactions t left join ledger_postings p on p.transaction_id = t.id
     where :wallets::text[] is null or t.id in (select transaction_id from ledger_postings where wallet_id = any(:wallets::text[]))
     group by t.id having sum(p.credits) is distinct from 0`,
  lot_differs: `
    select w.id, w.credits_available::text as stored, coalesce(p.credits, 0)::text as found
      from wallet_transactions w
      left join (select lot_id, sum(credits) as credits from ledger_postings where account = 'lot' group by lot_id) p on p.lot_id = w.id
     where w.credits_available <> coalesce(p.credits, 0) and ${isSelectedWallet('w.wallet_id')}`,
  wallet_differs: `
    select w.id, format('%s credits, %s owed, %s in money', w.credit_balance, w.credits_owed, w.balance) as stored,
           format('%s credits, %s owed', coalesce(p.credits, 0), coalesce(p.owed, 0)) as found
      from wallets w
      left join (select wallet_id, sum(credits) as credits, -coalesce(sum(credits) filter (where account = 'overdraft'), 0) as owed
                   from ledger_postings where account in ('lot', 'overdraft') group by wallet_id) p on p.wallet_id = w.id
     where (w.credit_balance <> coalesce(p.credits, 0) or w.credits_owed <> coalesce(p.owed, 0)
            or w.balance <> round(w.credit_balance * w.conversion_rate, 18)) and ${isSelectedWallet('w.id')}`,
  movement_differs: `
    select w.id, format('%s %s %s', w.transaction_status, w.type, w.credit_amount) as stored, coalesce(p.credits, 0)::text as found
      from wallet_transactions w
      left join (select wallet_transaction_id, sum(credits) as credits from ledger_postings where account in ('lot', 'overdraft')
                  group by wallet_transaction_id) p on p.wallet_transaction_id = w.id
     where coalesce(p.credits, 0) <> case when w.transaction_status <> 'completed' then 0
                                          when w.type = 'debit' then -w.credit_amount else w.credit_amount end
       and ${isSelectedWallet('w.wallet_id')}`,
};

/** Finds the first `limit` faults of each kind. */
export function findCreditFaults(
  database: Database,
  selection: { wallets: Wallets; limit: number },
): Promise<CreditFault[]> {
  return findFaults(database, QUESTIONS, selection);
}

export type CreditSums = { wallets: number; lots: number; postings: number };

export async function loadCreditSums(database: Database): Promise<CreditSums> {
  const { rows } = await database.raw(
    `select (select count(*) from wallets)::int as wallets, (select count(*) from wallet_transactions where type = 'credit')::int as lots,
            (select count(*) from ledger_postings)::int as postings`,
  );
  return rows[0];
}

/** Lists the most recently changed wallets, and some at random. */
export async function sampleWallets(database: Database, count: number): Promise<string[]> {
  const { rows } = await database.raw(
    `(select id from wallets order by updated_at desc limit ?) union (select id from wallets order by random() limit ?)`,
    [count, count],
  );
  return rows.map(({ id }: { id: string }) => id);
}
