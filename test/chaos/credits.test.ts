/**
 * Credits under fire: many debits, top-ups, purchases, expiries and voids of one hot wallet and of some cold ones, from two processes' worth of
 * connections, of which some are cut in the middle of what they do. Whoever is cut asks again under the same key. In the end not
 * one unit is lost, doubled or overdrawn: what the wallets hold is what was answered, and the trial balance finds nothing.
 */
import { expect } from 'chai';
import { auditCredits } from '../../actions/audit/credits.ts';
import { createInvoice } from '../../actions/invoices/create-invoice.ts';
import { holdInvoice } from '../../actions/invoices/hold-invoice.ts';
import { voidInvoice } from '../../actions/invoices/void-invoice.ts';
import { changeInvoicePayment } from '../../actions/payments/change-invoice-payment.ts';
import { debitWallet } from '../../actions/wallets/debit-wallet.ts';
import { expireCredits } from '../../actions/wallets/expire-credits.ts';
import { topUpWallet } from '../../actions/wallets/top-up.ts';
import { Decimal } from '../../core/decimal.ts';
import { FarthingError } from '../../core/error.ts';
import { withReceipt } from '../../core/invoice/payment-status.ts';
import { createInvoiceShape } from '../../core/invoice/record.ts';
import { debitShape, topUpShape } from '../../core/wallet/request.ts';
import { connectPostgres, urlOf } from '../../storage/postgres/postgres.ts';
import type { Stores } from '../../storage/stores.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

// Answers of every shape.
type Answer = any;

const OPERATIONS = 2000;
const AT_ONCE = 40;
const COLD = 5;

describe('chaos: credits', function () {
  this.timeout(1_800_000);
  let api: TestApi;
  let processes: Stores[];
  let cut: ReturnType<typeof setInterval>;
  const author = { user_id: 'user_1', now: new Date('2026-03-15T12:00:00Z') };

  before(async () => {
    api = await startTestApi({ now: author.now });
    const { services } = api;
    processes = [0, 1].map(() => ({ ...services, postgres: connectPostgres(urlOf(services.postgres)) }));
  });
  after(async () => {
    clearInterval(cut);
    for (const { postgres } of processes) await postgres.destroy();
    await api.stop();
  });

  let seed = 17;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const ok = async (path: string, body: object): Promise<Answer> => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.within(200, 299);
    return answer.body;
  };
  let cuts = 0;
  const why = new Map<string, number>();
  /** Until it is answered: what was cut is asked again. */
  async function surely<T>(work: (stores: Stores) => Promise<T>): Promise<T | FarthingError> {
    for (;;) {
      try {
        return await work(processes[random(2)]!);
      } catch (error) {
        if (error instanceof FarthingError && error.http_status_code < 500) return error;
        cuts++;
        const { code = 'cut' } = error as { code?: string };
        why.set(code, (why.get(code) ?? 0) + 1);
      }
    }
  }

  it('not one unit is lost, doubled or overdrawn', async () => {
    const wallets: Answer[] = [];
    for (let n = 0; n <= COLD; n++) {
      await ok('/customers', { external_id: `customer ${n}` });
      const config = { allowed_price_types: ['ALL'] };
      wallets.push(
        await ok('/wallets', {
          external_customer_id: `customer ${n}`,
          currency: 'usd',
          initial_credits_to_load: '200',
          config,
        }),
      );
    }
    /** By wallet, what was answered. */
    const expected = new Map<string, Decimal>(wallets.map(({ id }) => [id, new Decimal(200)]));
    const add = (id: string, credits: Decimal | number | string) => expected.set(id, expected.get(id)!.plus(credits));
    const seen = new Set<string>();
    const scope = api.scope;
    const refused = { debit: 0, void: 0 };

    const debit = async (id: string, key: string) => {
      const request = debitShape.parse({
        credits: String(1 + random(9)),
        transaction_reason: 'MANUAL_BALANCE_DEBIT',
        idempotency_key: key,
      });
      // Twice at once: a key takes once.
      const both = await Promise.all(
        [0, 1].map(() => surely((stores) => debitWallet(stores, scope, { id, request, author }))),
      );
      const done = both.filter((one) => !(one instanceof FarthingError));
      if (done.length === 0) return void refused.debit++;
      expect(new Set(done.map((one) => (one as Answer).wallet_transaction.id)).size).to.equal(1);
      if (!seen.has(key)) add(id, `-${request.credits}`);
      seen.add(key);
    };
    const topUp = async (id: string, key: string) => {
      const credits_to_add = String(1 + random(9));
      // Some expire in the middle of it.
      const expiry = random(3) === 0 ? { expiry_date_utc: '2026-03-15T12:00:01Z' } : {};
      const request = topUpShape.parse({
        credits_to_add,
        transaction_reason: 'FREE_CREDIT_GRANT',
        idempotency_key: key,
        ...expiry,
      });
      const done = await surely((stores) => topUpWallet(stores, scope, { id, request, author }));
      if (done instanceof FarthingError) throw done;
      add(id, credits_to_add);
    };
    const buy = async (id: string, key: string) => {
      const amount = String(1 + random(9));
      const request = topUpShape.parse({
        amount,
        transaction_reason: 'PURCHASED_CREDIT_INVOICED',
        idempotency_key: key,
      });
      const done = await surely((stores) => topUpWallet(stores, scope, { id, request, author }));
      if (done instanceof FarthingError) throw done;
      // Two confirmations at one time: one credit.
      const pay = (stores: Stores) =>
        stores.postgres.transaction(async (transaction) => {
          const held = await holdInvoice(transaction, scope, done.invoice_id!);
          if (new Decimal(held.invoice.amount_remaining).isZero()) return;
          const changes = withReceipt(held.invoice, held.invoice.amount_remaining, author.now);
          await changeInvoicePayment(stores, transaction, { ...held, changes, by: author });
        });
      await Promise.all([surely(pay), surely(pay)]);
      add(id, amount);
    };
    const invoiceAndVoid = async (wallet: Answer, key: string) => {
      const amount = String(1 + random(9));
      const request = createInvoiceShape.parse({
        customer_id: wallet.customer_id,
        currency: 'usd',
        amount_due: amount,
        total: amount,
        subtotal: amount,
        invoice_status: 'FINALIZED',
        idempotency_key: key,
      });
      const made = await surely((stores) => createInvoice(stores, scope, request, author));
      const [row] = await api.services.postgres('invoices').where({ ...scope, idempotency_key: key });
      if (made instanceof FarthingError && !row) throw made;
      if (random(2) === 0) return void add(wallet.id, `-${row.total_prepaid_credits_applied}`);
      const voided = await surely((stores) => voidInvoice(stores, scope, { id: row.id, metadata: null, author }));
      const [now] = await api.services.postgres('invoices').where({ id: row.id });
      if (voided instanceof FarthingError) refused.void++;
      expect(now.invoice_status).to.equal('VOIDED');
    };
    const expire = () =>
      surely((stores) => expireCredits(stores, { now: new Date('2026-03-15T12:00:01.001Z'), only: scope }));

    const deeds = [debit, debit, debit, topUp, buy] as const;
    let next = 0;
    const worker = async () => {
      while (next < OPERATIONS) {
        const n = next++;
        const wallet = random(3) > 0 ? wallets[0] : wallets[1 + random(COLD)];
        const kind = random(7);
        if (n % 200 === 199) await expire();
        else if (kind < 5) await deeds[kind]!(wallet.id, `key ${n}`);
        else await invoiceAndVoid(wallet, `key ${n}`);
      }
    };
    cut = setInterval(() => {
      void api.services.postgres
        .raw(
          `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and state = 'idle in transaction'
          order by random() limit 1`,
        )
        .catch(() => undefined);
    }, 150);
    const began = performance.now();
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    clearInterval(cut);
    await expire();
    const seconds = (performance.now() - began) / 1000;

    const findings: unknown[] = [];
    const sums = await auditCredits(api.services, (finding) => findings.push(finding));
    expect(findings).to.deep.equal([]);
    for (const { id } of wallets) {
      const expired = await api.services
        .postgres('wallet_transactions')
        .where({ wallet_id: id, transaction_reason: 'CREDIT_EXPIRED' });
      const gone = expired.reduce((sum: Decimal, one: Answer) => sum.plus(one.credit_amount), new Decimal(0));
      const { credit_balance, credits_owed } = await api.services.postgres('wallets').where({ id }).first();
      expect(new Decimal(credit_balance).toFixed(), id).to.equal(expected.get(id)!.minus(gone).toFixed());
      expect(new Decimal(credits_owed).isZero(), id).to.equal(true);
    }
    console.log(
      `      ${OPERATIONS} operations in ${seconds.toFixed(0)} s, ${cuts} of them cut or in each other's way, ${refused.debit} debits refused; ${sums.postings} postings; ${JSON.stringify(Object.fromEntries(why))}`,
    );
    expect(cuts, 'some were cut').to.be.greaterThan(0);
  });
});
