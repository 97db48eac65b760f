/**
 * Credits under fire: debits, top-ups, purchases, expiries, voids and reservations of one hot wallet and of many cold ones, from two processes' worth of
 * connections, of which some are cut in the middle of what they do. Whoever is cut asks again under the same key. In the end not
 * one unit is lost, doubled or overdrawn: what the wallets hold is what a plain ledger of the answers says, and the trial balance finds nothing.
 * `WALLET_OPERATIONS=100000` for all of them.
 */
import { expect } from 'chai';
import { debitWallet } from '../../actions/credits/wallets/debit-wallet.ts';
import { expireCredits } from '../../actions/credits/wallets/expire-credits.ts';
import { createInvoice } from '../../actions/invoicing/invoices/create-invoice.ts';
import { lockInvoice } from '../../actions/invoicing/invoices/lock-invoice.ts';
import { voidInvoice } from '../../actions/lifecycle/invoices/void-invoice.ts';
import { changeInvoicePayment } from '../../actions/lifecycle/payments/change-invoice-payment.ts';
import { topUpWallet } from '../../actions/lifecycle/wallets/top-up.ts';
import { auditCredits } from '../../actions/operations/audit/credits.ts';
import { auditReservations } from '../../actions/operations/audit/reservations.ts';
import { checkReservation, type ReservationCheckResult } from '../../actions/reservations/check.ts';
import { endDueReservations } from '../../actions/reservations/end-due.ts';
import { commitReservation, releaseReservation } from '../../actions/reservations/end-reservation.ts';
import { checkShape } from '../../core/credits/reservations/request.ts';
import { debitShape, topUpShape } from '../../core/credits/wallet/request.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { applyPaidAmount } from '../../core/invoicing/invoice/payment-status.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import type { Wallet } from '../support/answers.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { finalInvoice } from '../support/final-invoice.ts';
import { operationCount } from '../support/samples.ts';

const OPERATIONS = operationCount(5_000);
const AT_ONCE = 60;
const COLD = 60;
const PURCHASES = 50;
const SECOND = 500;
const CUT_EVERY_MS = 500;
/** In parts of a hundred or so, of the hot wallet and of the cold ones alike. */
const DEEDS = { debit: 56, topUp: 20, reserve: 20, buy: 2, invoiceAndVoid: 2, expire: 0.2 };

/** Fewer credits than were asked for, or fewer beside what is held. */
function isLacking({ code, details }: FarthingError): boolean {
  return code === 'invalid_operation' && details?.['field'] === 'credits';
}

describe('chaos: credits', function () {
  this.timeout(7_200_000);
  let api: TestApi;
  let processes: Stores[];
  let cut: ReturnType<typeof setInterval>;
  let author = { user_id: 'user_1', now: new Date('2026-03-15T12:00:00Z') };

  before(async () => {
    api = await startTestApi({ now: author.now });
    const { services } = api;
    processes = [0, 1].map(() => ({ ...services, postgres: connectPostgres(readUrl(services.postgres)) }));
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
  const ok = async <Path extends string>(path: Path, body: object) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.within(200, 299);
    return answer.body;
  };
  const inSeconds = (seconds: number) => new Date(author.now.getTime() + seconds * 1000);
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
    const wallets: Wallet[] = [];
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
    const byId = new Map(wallets.map((wallet) => [wallet.id, wallet]));
    /** By wallet, what was answered. */
    const expected = new Map<string, Decimal>(wallets.map(({ id }) => [id, new Decimal(200)]));
    const add = <Path extends string>(id: Path, credits: ConstructorParameters<typeof Decimal>[0]) =>
      expected.set(id, expected.get(id)!.plus(credits));
    const seen = new Set<string>();
    const scope = api.scope;
    const refused = { debit: 0, void: 0, reserve: 0 };
    const counts: Record<string, number> = {};

    const debit = async (id: string, key: string) => {
      const request = debitShape.parse({
        credits: String(1 + random(9)),
        transaction_reason: 'MANUAL_BALANCE_DEBIT',
        idempotency_key: key,
      });
      // Some twice at once: a key takes once.
      const both = await Promise.all(
        Array.from({ length: random(4) === 0 ? 2 : 1 }, () =>
          surely((stores) => debitWallet(stores, scope, { id, request, author })),
        ),
      );
      // Nothing is refused but for what the wallet has not, or holds for others: a key that was used for another debit is a fault.
      for (const one of both) if (one instanceof FarthingError && !isLacking(one)) throw one;
      const done = both.filter((one) => !(one instanceof FarthingError));
      if (done.length === 0) return void refused.debit++;
      expect(
        new Set(done.map((one) => (one as Exclude<typeof one, FarthingError>).wallet_transaction.id)).size,
      ).to.equal(1);
      if (!seen.has(key)) add(id, `-${request.credits}`);
      seen.add(key);
    };
    const topUp = async (id: string, key: string) => {
      const credits_to_add = String(1 + random(9));
      // Some expire in the middle of it.
      const expiry = random(3) === 0 ? { expiry_date_utc: inSeconds(5).toISOString() } : {};
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
          const held = await lockInvoice(transaction, scope, done.invoice_id!);
          if (new Decimal(held.invoice.amount_remaining).isZero()) return;
          const changes = applyPaidAmount(held.invoice, held.invoice.amount_remaining, author.now);
          await changeInvoicePayment(stores, transaction, { ...held, changes, by: author });
        });
      await Promise.all([surely(pay), surely(pay)]);
      add(id, amount);
    };
    const invoiceAndVoid = async (wallet: { id: string; customer_id: string }, key: string) => {
      const amount = String(1 + random(9));
      const request = finalInvoice({ customer_id: wallet.customer_id, amount, idempotency_key: key });
      const made = await surely((stores) => createInvoice(stores, scope, request, author));
      const [row] = await api.services.postgres('invoices').where({ ...scope, idempotency_key: key });
      if (made instanceof FarthingError && !row) throw made;
      if (random(2) === 0) return void add(wallet.id, `-${row.total_prepaid_credits_applied}`);
      const voided = await surely((stores) => voidInvoice(stores, scope, { id: row.id, metadata: null, author }));
      const [now] = await api.services.postgres('invoices').where({ id: row.id });
      if (voided instanceof FarthingError) refused.void++;
      expect(now.invoice_status).to.equal('VOIDED');
    };
    /** Held, and then used in part, left, or never ended by who asked. */
    const reserve = async <Path extends string>(wallet_id: Path, key: string) => {
      const credits = String(1 + random(9));
      const hold = { ttl_seconds: 2 + random(3), on_expiry: random(2) === 0 ? 'charge' : 'release' };
      const { customer_id } = byId.get(wallet_id)!;
      const request = checkShape.parse({ customer_id, wallet_id, credits, hold, idempotency_key: key });
      const told = (await surely((stores) =>
        checkReservation(stores, scope, { request, author }),
      )) as ReservationCheckResult;
      if (told instanceof FarthingError) throw told;
      if (!told.allowed) return void refused.reserve++;
      const { id } = told.reservation!;
      const how = random(10);
      if (how < 6) {
        const quantity = String(random(Number(credits) + 1));
        const commit = { quantity, properties: null };
        const done = await surely((stores) => commitReservation(stores, scope, { id, request: commit, author }));
        if (done instanceof FarthingError) throw done;
        add(wallet_id, `-${quantity}`);
      } else if (how < 8) {
        const done = await surely((stores) => releaseReservation(stores, scope, { id, author }));
        if (done instanceof FarthingError) throw done;
      } else if (hold.on_expiry === 'charge') add(wallet_id, `-${credits}`);
    };
    /** Holds that nobody ended, and then what is past its expiry; who is cut leaves the rest to the next. */
    const expire = async (now = author.now) => {
      await endDueReservations(api.services, { now });
      await surely((stores) => expireCredits(stores, { now, only: scope }));
    };

    const deeds = {
      debit,
      topUp,
      reserve,
      buy,
      expire: () => expire(),
      invoiceAndVoid: <Path extends string>(id: Path, key: string) => invoiceAndVoid(byId.get(id)!, key),
    };
    const drawn = Object.entries(DEEDS).flatMap(
      ([deed, share]) => Array(share * 10).fill(deed) as (keyof typeof deeds)[],
    );
    let next = 0;
    const worker = async () => {
      while (next < OPERATIONS) {
        const n = next++;
        // A second passes with so many.
        if (n % SECOND === SECOND - 1) author = { ...author, now: inSeconds(1) };
        const { id } = wallets[random(2) === 0 ? 0 : 1 + random(COLD)]!;
        const deed = drawn[random(drawn.length)]!;
        counts[deed] = (counts[deed] ?? 0) + 1;
        await deeds[deed](id, `key ${n}`);
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
    }, CUT_EVERY_MS);
    const began = performance.now();
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    clearInterval(cut);
    const { failed } = await endDueReservations(api.services, { now: inSeconds(10) });
    expect(failed).to.deep.equal([]);
    await expire(inSeconds(10));
    const seconds = (performance.now() - began) / 1000;

    const findings: unknown[] = [];
    const sums = await auditCredits(api.services, (finding) => findings.push(finding));
    await auditReservations(api.services, (finding) => findings.push(finding));
    expect(findings).to.deep.equal([]);
    const { rows } = await api.services.postgres.raw(
      `select coalesce(sum(credits), 0)::text as balance from ledger_postings`,
    );
    expect(rows[0]).to.deep.equal({ balance: '0' });
    const overdrawn = await api.services
      .postgres('wallet_transactions')
      .select(
        'id',
        'wallet_id',
        'transaction_reason',
        'reference_id',
        'credit_amount',
        'credit_balance_after',
        'created_at',
      )
      .where('credit_balance_after', '<', 0);
    expect(overdrawn, JSON.stringify(overdrawn)).to.deep.equal([]);
    for (const { id } of wallets) {
      const expired = await api.services
        .postgres('wallet_transactions')
        .where({ wallet_id: id, transaction_reason: 'CREDIT_EXPIRED' });
      const gone = expired.reduce((sum: Decimal, one) => sum.plus(one.credit_amount), new Decimal(0));
      const { credit_balance, credits_owed } = await api.services.postgres('wallets').where({ id }).first();
      expect(new Decimal(credit_balance).toFixed(), id).to.equal(expected.get(id)!.minus(gone).toFixed());
      expect(new Decimal(credits_owed).isZero(), id).to.equal(true);
    }
    console.log(
      `      ${OPERATIONS} operations in ${seconds.toFixed(0)} s (${JSON.stringify(counts)}), ${cuts} of them cut or in each other's way, refused ${JSON.stringify(refused)}; ${sums.postings} postings; ${JSON.stringify(Object.fromEntries(why))}`,
    );
    expect(cuts, 'some were cut').to.be.greaterThan(0);
  });

  it('two confirmations of one top-up at one time give one credit', async () => {
    await ok('/customers', { external_id: 'buyer' });
    const wallet = await ok('/wallets', { external_customer_id: 'buyer', currency: 'usd' });
    const apart: number[] = [];
    const confirm = async (id: string, amount: string) => {
      const sent = performance.now();
      const body = { payment_status: 'SUCCEEDED', amount };
      const { status } = await api.request('PUT', `/invoices/${id}/payment`, { body });
      return { sent, status };
    };
    for (let n = 1; n <= PURCHASES; n++) {
      const bought = {
        amount: String(n),
        transaction_reason: 'PURCHASED_CREDIT_INVOICED',
        idempotency_key: `bought ${n}`,
      };
      const { invoice_id } = await ok(`/wallets/${wallet.id}/top-up`, bought);
      const [one, other] = await Promise.all([confirm(invoice_id!, String(n)), confirm(invoice_id!, String(n))]);
      apart.push(Math.abs(one.sent - other.sent));
      // The second is told that it is paid, or sees what the first has made of it.
      expect([one.status, other.status]).to.include(200);
      const [credits] = await api.services
        .postgres('wallet_transactions')
        .where({ wallet_id: wallet.id })
        .sum('credit_amount as sum')
        .where({ transaction_status: 'completed' });
      expect(Number(credits?.sum), `after ${n}`).to.equal((n * (n + 1)) / 2);
    }
    const { credit_balance } = await api.services.postgres('wallets').where({ id: wallet.id }).first();
    expect(Number(credit_balance)).to.equal((PURCHASES * (PURCHASES + 1)) / 2);
    apart.sort((a, b) => a - b);
    console.log(
      `      of ${PURCHASES} purchases the two confirmations were sent ${apart[PURCHASES / 2]!.toFixed(3)} ms apart in the median`,
    );
    expect(apart[PURCHASES / 2], 'most are sent within a millisecond').to.be.lessThan(1);
    const findings: unknown[] = [];
    await auditCredits(api.services, (finding) => findings.push(finding));
    expect(findings).to.deep.equal([]);
  });
});
