/**
 * The ledger is kept by the database: no statement of ours or of anybody else moves a balance without postings that add up to 0
 * (docs/decisions/0014-credit-ledger.md).
 */
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { creditWallet } from '../../../../actions/credits/wallets/credit-wallet.ts';
import { moveCredits } from '../../../../actions/credits/wallets/move-credits.ts';
import { callersKey } from '../../../../core/credits/wallet/movement-key.ts';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { migratePostgres } from '../../../../sql/migrate.ts';
import { LedgerPostingModel } from '../../../../storage/models/credits/ledger.ts';
import { WalletModel } from '../../../../storage/models/credits/wallet.ts';
import type { WalletTransactionModel } from '../../../../storage/models/credits/wallet-transaction.ts';
import { type FreshDatabase, testStores } from '../../../support/stores.ts';

const scope = { tenant_id: 'tenant_1', environment_id: 'env_1' };
const author = { user_id: 'user_1', now: new Date('2026-01-01T00:00:00Z') };
const OWN = { tenant_id: 'tenant_1', environment_id: 'env_1' };

describe('the ledger', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await (await testStores()).freshDatabase();
  });
  after(() => database.close());

  let count = 0;
  async function credited(amount = '100', of = scope): Promise<WalletTransactionModel> {
    const key = `credit ${++count}`;
    return database.postgres.transaction((transaction) =>
      creditWallet(transaction, of, {
        customer_id: `cust_${count}`,
        currency: 'usd',
        amount: new Decimal(amount),
        transaction_reason: 'FREE_CREDIT_GRANT',
        reference_type: 'EXTERNAL',
        reference_id: key,
        idempotency_key: callersKey.parse(key),
        description: '',
        metadata: null,
        author,
      }),
    );
  }
  const walletOf = (lot: WalletTransactionModel) =>
    WalletModel.fetch(scope, lot.wallet_id, { database: database.postgres });
  async function refusal(text: string, values: readonly unknown[] = []): Promise<string> {
    try {
      await database.postgres.transaction((transaction) => transaction.raw(text, values as never));
    } catch (error) {
      return String(error);
    }
    throw new Error(`not refused: ${text}`);
  }

  it('one key is one credit, whoever asks again', async () => {
    const lot = await credited();
    expect(lot).to.include({ credits_available: '100', credit_balance_after: '100', transaction_status: 'completed' });
    count--;
    expect((await credited()).id).to.equal(lot.id);
    expect((await walletOf(lot)).credit_balance).to.equal('100');
  });

  it('a balance, and what is left of a lot, change by postings alone', async () => {
    const lot = await credited();
    const of = [lot.wallet_id];
    expect(await refusal('update wallets set credit_balance = credit_balance + 1 where id = ?', of)).to.contain(
      'by postings alone',
    );
    expect(await refusal('update wallets set balance = 0 where id = ?', of)).to.contain('by postings alone');
    expect(await refusal('update wallets set credits_owed = 3 where id = ?', of)).to.contain('by postings alone');
    expect(await refusal('update wallets set conversion_rate = 2 where id = ?', of)).to.contain('stays');
    expect(await refusal('update wallet_transactions set credits_available = 7 where id = ?', [lot.id])).to.contain(
      'by postings alone',
    );
    expect(await refusal('update wallet_transactions set credit_amount = 7 where id = ?', [lot.id])).to.contain(
      'stays',
    );
    for (const status of ['pending', 'failed'])
      expect(
        await refusal('update wallet_transactions set transaction_status = ? where id = ?', [status, lot.id]),
      ).to.contain('stays');
    expect(
      await refusal(`insert into wallets (id, tenant_id, environment_id, customer_id, currency, credit_balance)
                     values ('wallet_x', 'tenant_1', 'env_1', 'cust_x', 'usd', 5)`),
    ).to.contain('begins empty');
    expect(await walletOf(lot)).to.include({ credit_balance: '100', balance: '100' });
  });

  it('is append only', async () => {
    await credited();
    for (const table of ['ledger_transactions', 'ledger_postings'])
      for (const statement of [
        `update ${table} set tenant_id = tenant_id`,
        `delete from ${table}`,
        `truncate ${table} cascade`,
      ])
        expect(await refusal(statement), statement).to.contain('append only');
  });

  const POSTING = `insert into ledger_postings (tenant_id, environment_id, transaction_id, position, wallet_id,
                                                wallet_transaction_id, account, lot_id, credits) `;
  const entry = (
    id: string,
  ) => `insert into ledger_transactions (id, tenant_id, environment_id, idempotency_key, reason, reference_type,
                                  reference_id, occurred_at) values ('${id}', 'tenant_1', 'env_1', '${id}', 'MANUAL_BALANCE_DEBIT',
                                  'EXTERNAL', 'x', now()); `;
  const row = (id: string, at: number, lot: WalletTransactionModel, [account, credits]: [string, number]) =>
    `('tenant_1', 'env_1', '${id}', ${at}, '${lot.wallet_id}', '${lot.id}', '${account}', ${account === 'lot' ? `'${lot.id}'` : 'null'}, ${credits})`;

  it('refuses postings that do not add up to 0, and a transaction without postings', async () => {
    const lot = await credited();
    const half = `${entry('ltxn_half')}${POSTING} values ${row('ltxn_half', 0, lot, ['lot', -10])}, ${row('ltxn_half', 1, lot, ['spent', 9])}`;
    expect(await refusal(half)).to.contain('add up to -1, not to 0');
    expect(await refusal(entry('ltxn_bare'))).to.contain('add up to nothing');
    expect((await walletOf(lot)).credit_balance).to.equal('100');
  });

  it('refuses to overdraw a lot, to fill it beyond what it was, and to post into what is written already', async () => {
    const lot = await credited();
    const pair = (id: string, credits: number) =>
      `${POSTING} values ${row(id, 0, lot, ['lot', credits])}, ${row(id, 1, lot, ['spent', -credits])}`;
    expect(await refusal(entry('ltxn_over') + pair('ltxn_over', -101))).to.contain('violates check constraint');
    expect(await refusal(entry('ltxn_fill') + pair('ltxn_fill', 1))).to.contain('violates check constraint');
    const [written] = await LedgerPostingModel.in(scope, database.postgres).where({ lot_id: lot.id });
    const later = `${POSTING} values ${row(written!.transaction_id, 7, lot, ['lot', -1])}, ${row(written!.transaction_id, 8, lot, ['spent', 1])}`;
    expect(await refusal(later)).to.contain('has its postings already');
    const other = await credited();
    const foreign = `${entry('ltxn_for')}${POSTING} values ${row('ltxn_for', 0, { ...lot, wallet_id: other.wallet_id } as never, ['lot', -1])},
                     ${row('ltxn_for', 1, other, ['spent', 1])}`;
    expect(await refusal(foreign)).to.contain('not one of its wallet');
  });

  it('refuses to post into a wallet of another tenant or environment than the transaction is of', async () => {
    for (const of of [
      { ...scope, tenant_id: 'tenant_2' },
      { ...scope, environment_id: 'env_2' },
    ]) {
      const lot = await credited('100', of);
      const id = `ltxn_into_${of.tenant_id}_${of.environment_id}`;
      const posting = (at: number, account: string, credits: number) =>
        `('${of.tenant_id}', '${of.environment_id}', '${id}', ${at}, '${lot.wallet_id}', '${lot.id}', '${account}', null, ${credits})`;
      const pair = `${POSTING} values ${posting(0, 'overdraft', -7)}, ${posting(1, 'spent', 7)}`;
      expect(await refusal(entry(id) + pair)).to.contain('is of another environment');
      const left = await WalletModel.fetch(of, lot.wallet_id, { database: database.postgres });
      expect(left).to.include({ credit_balance: '100', credits_owed: '0' });
    }
  });

  it('whose a wallet and its transactions are stays', async () => {
    const lot = await credited();
    for (const column of ['tenant_id', 'environment_id']) {
      const wallet = `update wallets set ${column} = 'elsewhere' where id = ?`;
      expect(await refusal(wallet, [lot.wallet_id]), wallet).to.contain('whose it is, stays');
      const transaction = `update wallet_transactions set ${column} = 'elsewhere' where id = ?`;
      expect(await refusal(transaction, [lot.id]), transaction).to.contain('stays');
    }
    const rename = 'update wallet_transactions set id = ? where id = ?';
    expect(await refusal(rename, ['wtxn_renamed', lot.id])).to.match(/stays|foreign key/);
  });

  it('refuses a posting to a wallet of another tenant, whatever its account, and one that another wallet tells', async () => {
    const lot = await credited('10');
    const other = await credited('10');
    const foreign = `
      insert into ledger_transactions (id, tenant_id, environment_id, idempotency_key, reason, reference_type, reference_id, occurred_at)
      values ('ltxn_theirs', 'tenant_2', 'env_1', 'theirs', 'MANUAL_BALANCE_DEBIT', 'EXTERNAL', 'x', now());
      ${POSTING} values ('tenant_2', 'env_1', 'ltxn_theirs', 0, '${lot.wallet_id}', '${lot.id}', 'overdraft', null, -7),
                        ('tenant_2', 'env_1', 'ltxn_theirs', 1, '${lot.wallet_id}', '${lot.id}', 'debited', null, 7)`;
    expect(await refusal(foreign)).to.contain('of another environment');
    const told = `${entry('ltxn_told')}${POSTING}
      values ('tenant_1', 'env_1', 'ltxn_told', 0, '${lot.wallet_id}', '${other.id}', 'overdraft', null, -7),
             ('tenant_1', 'env_1', 'ltxn_told', 1, '${lot.wallet_id}', '${other.id}', 'debited', null, 7)`;
    expect(await refusal(told)).to.contain('told by a transaction of another wallet');
    expect(await walletOf(lot)).to.include({ credit_balance: '10', credits_owed: '0' });
  });

  it('what is pending is completed with its posting alone', async () => {
    const lot = await credited('10');
    const { id: wallet_id, customer_id } = await walletOf(lot);
    await database.postgres('wallet_transactions').insert({
      ...OWN,
      id: 'wtxn_pending',
      wallet_id,
      customer_id,
      type: 'credit',
      currency: 'usd',
      amount: '5',
      credit_amount: '5',
      credits_available: '0',
      credit_balance_before: '10',
      credit_balance_after: '10',
      transaction_status: 'pending',
      transaction_reason: 'PURCHASED_CREDIT_INVOICED',
      reference_type: 'INVOICE',
      reference_id: 'inv_1',
      idempotency_key: 'pending',
    });
    const complete = `update wallet_transactions set transaction_status = 'completed' where id = 'wtxn_pending'`;
    expect(await refusal(complete)).to.contain('0 of its 5 credits are posted');
    const pending = { ...lot, id: 'wtxn_pending' } as WalletTransactionModel;
    const posted = (id: string, credits: number) => `${complete}; ${entry(id)}${POSTING}
      values ${row(id, 0, pending, ['lot', credits])}, ${row(id, 1, pending, ['purchased', -credits])}`;
    expect(await refusal(posted('ltxn_part', 4))).to.contain('4 of its 5 credits are posted');
    await database.postgres.transaction((transaction) => transaction.raw(posted('ltxn_whole', 5)));
    expect((await walletOf(lot)).credit_balance).to.equal('15');
  });

  it('what is taken beyond the lots is owed, and paid back by what comes next', async () => {
    const lot = await credited('10');
    const saying = { reference_type: 'EXTERNAL' as const, reference_id: 'x', description: '', metadata: null, author };
    const moved = (movement: never, transaction_reason: 'MANUAL_BALANCE_DEBIT' | 'FREE_CREDIT_GRANT') =>
      database.postgres.transaction(async (transaction) => {
        const wallet = await WalletModel.fetch(scope, lot.wallet_id, { database: transaction, lock: true });
        const idempotency_key = callersKey.parse(`moved ${++count}`);
        return moveCredits(transaction, wallet, { ...saying, idempotency_key, transaction_reason, movement });
      });
    const at_ms = author.now.getTime();
    const debit = { kind: 'spend', credits: new Decimal(25), at_ms, allow_negative: true } as never;
    const owing = await moved(debit, 'MANUAL_BALANCE_DEBIT');
    expect(owing.wallet).to.include({ credit_balance: '-15', balance: '-15', credits_owed: '15' });
    expect(owing.transaction).to.include({ credit_amount: '25', credit_balance_after: '-15', credits_available: '0' });
    const paid = await moved({ kind: 'credit', credits: new Decimal(20) } as never, 'FREE_CREDIT_GRANT');
    expect(paid.wallet).to.include({ credit_balance: '5', credits_owed: '0' });
    expect(paid.transaction).to.include({ credit_amount: '20', credits_available: '5' });
  });

  it('credits of before there was a ledger are posted by the migration', async () => {
    const old = await (await testStores()).freshDatabase();
    const folder = mkdtempSync(join(tmpdir(), 'farthing-sql-'));
    try {
      await old.postgres.raw('drop schema public cascade; create schema public');
      const files = new URL('../../../../sql/postgres/', import.meta.url).pathname;
      for (const name of readdirSync(files).filter((one) => one < '0135'))
        cpSync(join(files, name), join(folder, name));
      await migratePostgres(old.postgres, { folder });
      const wallet = {
        id: 'wallet_old',
        ...OWN,
        customer_id: 'cust_1',
        currency: 'usd',
        balance: '12.50',
        credit_balance: '12.50',
      };
      await old.postgres('wallets').insert(wallet);
      const lot = {
        ...OWN,
        wallet_id: 'wallet_old',
        customer_id: 'cust_1',
        type: 'credit',
        currency: 'usd',
        transaction_reason: 'CREDIT_NOTE',
      };
      const amounts = (amount: string, from: string, to: string) => ({
        amount,
        credit_amount: amount,
        credits_available: amount,
        credit_balance_before: from,
        credit_balance_after: to,
      });
      await old.postgres('wallet_transactions').insert([
        {
          ...lot,
          id: 'wtxn_1',
          ...amounts('10', '0', '10'),
          reference_type: 'INVOICE',
          reference_id: 'inv_1',
          idempotency_key: 'rest/inv_1',
        },
        {
          ...lot,
          id: 'wtxn_2',
          ...amounts('2.50', '10', '12.5'),
          reference_type: 'INVOICE',
          reference_id: 'inv_2',
          idempotency_key: 'rest/inv_2',
        },
      ]);
      await migratePostgres(old.postgres);
      expect((await old.postgres('wallets').first()).credit_balance).to.equal('12.5');
      const postings = await old
        .postgres('ledger_postings')
        .select('account', 'lot_id', 'credits')
        .orderBy(['transaction_id', 'position']);
      expect(postings.map(({ account, lot_id, credits }) => [account, lot_id, Number(credits)])).to.deep.equal([
        ['lot', 'wtxn_1', 10],
        ['refunded', null, -10],
        ['lot', 'wtxn_2', 2.5],
        ['refunded', null, -2.5],
      ]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
      await old.close();
    }
  });
});
