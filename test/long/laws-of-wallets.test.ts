/**
 * Any order of top-ups, debits, invoices, voids and expiries of one wallet, through the stores, compared with a plain ledger after each; and now and then the
 * connection breaks off at a place of the generator's choice, before Postgres has what was sent or before anybody has what it answered. Whoever
 * is cut asks again under the same key, and it was done once (docs/rules/wallets.md, "The ledger").
 */
import { expect } from 'chai';
import fc from 'fast-check';
import type { Knex } from 'knex';
import { debitWallet } from '../../actions/credits/wallets/debit-wallet.ts';
import { expireCredits } from '../../actions/credits/wallets/expire-credits.ts';
import { createInvoice } from '../../actions/invoicing/invoices/create-invoice.ts';
import { voidInvoice } from '../../actions/lifecycle/invoices/void-invoice.ts';
import { topUpWallet } from '../../actions/lifecycle/wallets/top-up.ts';
import { auditCredits } from '../../actions/operations/audit/credits.ts';
import { debitShape, topUpShape } from '../../core/credits/wallet/request.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import type { Wallet } from '../support/answers.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type Cut, cutTo } from '../support/cut.ts';
import { finalInvoice } from '../support/final-invoice.ts';
import { samples } from '../support/samples.ts';

type Lot = { key: string; put: number; left: number; priority: number | null; expiry: number | null };
type Taken = { lot: Lot; n: number }[];

/** The wallet in whole credits, each taken by itself. */
class Ledger {
  now = 0;
  owed = 0;
  readonly lots: Lot[] = [];
  readonly invoices: { key: string; taken: Taken; isVoid: boolean }[] = [];

  get balance(): number {
    return this.lots.reduce((sum, { left }) => sum + left, 0) - this.owed;
  }
  #usable(): Lot[] {
    const good = this.lots.filter(({ left, expiry }) => left > 0 && (expiry === null || expiry >= this.now));
    const last = Number.POSITIVE_INFINITY;
    const by = (a: number | null, b: number | null) => (a === b ? 0 : (a ?? last) - (b ?? last));
    return good.sort((a, b) => by(a.priority, b.priority) || by(a.expiry, b.expiry) || b.put - a.put);
  }
  get usable(): number {
    return this.#usable().reduce((sum, { left }) => sum + left, 0);
  }
  topUp(lot: Lot): void {
    this.lots.push(lot);
    this.#repay([{ lot, n: lot.left }]);
  }
  #repay(those: Taken): void {
    for (const { lot, n } of those) {
      const paid = Math.min(this.owed, n);
      this.owed -= paid;
      lot.left -= paid;
    }
  }
  debit(credits: number, mayOwe: boolean): boolean {
    if (credits > this.usable && !mayOwe) return false;
    this.owed += credits - this.take(credits).reduce((sum, { n }) => sum + n, 0);
    return true;
  }
  take(credits: number): Taken {
    let lacking = credits;
    return this.#usable().flatMap((lot) => {
      const n = Math.min(lot.left, lacking);
      lacking -= n;
      lot.left -= n;
      return n === 0 ? [] : { lot, n };
    });
  }
  void(invoice: Ledger['invoices'][number]): void {
    invoice.isVoid = true;
    for (const { lot, n } of invoice.taken) lot.left += n;
    // What was used first pays first what is owed.
    this.#repay(invoice.taken);
  }
  expire(): void {
    for (const lot of this.lots) if (lot.expiry !== null && lot.expiry < this.now) lot.left = 0;
  }
}

/**
 * At which of the things that are said on the way, or answered, the connection breaks, or at the commit: before Postgres has it, or when it is done and nobody
 * has been told. Null where it does not.
 */
type Break = { side: 'sent' | 'answered'; place: number | 'commit' } | null;

type Real = {
  api: TestApi;
  /** By a way that breaks. */
  stores: Stores;
  way: Cut;
  wallet: Wallet;
  run: number;
  deeds: number;
  author: { user_id: string; now: Date };
};
type Command = fc.AsyncCommand<Ledger, Real>;

let breaks = 0;

/** Until it is answered: what was cut off is asked again. */
async function surely<T>(real: Real, at: Break, work: (stores: Stores) => Promise<T>): Promise<T | FarthingError> {
  const { way, stores } = real;
  const broken = { by: null as Promise<void> | null };
  if (at) watchFor(real, at, () => (broken.by ??= way.cut()));
  try {
    for (;;) {
      try {
        return await work(stores);
      } catch (error) {
        if (error instanceof FarthingError && error.http_status_code < 500) return error;
        if (broken.by === null) throw error;
        way.watch(undefined);
        await broken.by;
        await way.restore();
        broken.by = null;
        breaks++;
      }
    }
  } finally {
    way.watch(undefined);
    // It broke behind the answer.
    if (broken.by !== null) {
      await broken.by;
      await way.restore();
    }
  }
}

function watchFor({ way }: Real, { side, place }: NonNullable<Break>, cut: () => unknown): void {
  let left = place === 'commit' ? 1 : place;
  let isOpen = place !== 'commit';
  const seen = () => {
    if (isOpen && --left === 0) cut();
  };
  way.watch({
    sent: (text) => {
      isOpen ||= /commit/i.test(text);
      if (side === 'sent') seen();
    },
    answered: () => {
      if (side === 'answered') seen();
    },
  });
}

const START = Date.parse('2026-03-15T12:00:00Z');

/** One command: what it does to the ledger and to the service, and how it reads when it fails. */
function command(name: string, at: Break, run: (ledger: Ledger, real: Real, key: string) => Promise<void>): Command {
  const told = at ? `${name}, cut at ${at.side} ${at.place}` : name;
  return {
    check: () => true,
    async run(ledger, real) {
      // Each at an instant of its own, so that of lots that are alike one is older.
      ledger.now++;
      real.author = { ...real.author, now: new Date(START + ledger.now) };
      await run(ledger, real, `${real.run} ${++real.deeds}`);
      const { postgres } = real.api.services;
      const wallet = await postgres('wallets').where({ id: real.wallet.id }).first();
      const lots = await postgres('wallet_transactions')
        .where({ wallet_id: real.wallet.id, type: 'credit' })
        .whereNull('parent_transaction_id');
      const left = new Map(lots.map((lot) => [lot.idempotency_key, Number(lot.credits_available)]));
      expect([Number(wallet.credit_balance), Number(wallet.credits_owed)], told).to.deep.equal([
        ledger.balance,
        ledger.owed,
      ]);
      expect(Object.fromEntries(left), told).to.deep.equal(
        Object.fromEntries(ledger.lots.map((lot) => [lot.key, lot.left])),
      );
    },
    toString: () => told,
  };
}

/** Small lots, of which most debits use several. */
const put = fc.integer({ min: 1, max: 6 });
const credits = fc.integer({ min: 1, max: 15 });
const breaking: fc.Arbitrary<Break> = fc.option(
  fc.record({
    side: fc.constantFrom('sent' as const, 'answered' as const),
    place: fc.oneof(fc.constant('commit' as const), fc.integer({ min: 1, max: 25 })),
  }),
  { freq: 2 },
);
const perhaps = (...values: number[]) => fc.constantFrom(null, null, ...values);

const topUp: fc.Arbitrary<Command> = fc
  .tuple(put, perhaps(1, 2), perhaps(10_000, 30_000), breaking)
  .map(([n, priority, lasts, at]) =>
    command(`top up ${n}, priority ${priority}, for ${lasts} ms`, at, async (ledger, real, key) => {
      const expiry = lasts === null ? null : ledger.now + lasts;
      const request = topUpShape.parse({
        credits_to_add: String(n),
        transaction_reason: 'FREE_CREDIT_GRANT',
        idempotency_key: key,
        priority,
        ...(expiry === null ? {} : { expiry_date_utc: new Date(START + expiry).toISOString() }),
      });
      const { scope } = real.api;
      const { id } = real.wallet;
      const done = await surely(real, at, (stores) => topUpWallet(stores, scope, { id, request, author: real.author }));
      if (done instanceof FarthingError) throw done;
      ledger.topUp({ key, put: n, left: n, priority, expiry });
    }),
  );

const debit: fc.Arbitrary<Command> = fc
  .tuple(credits, fc.boolean(), fc.integer({ min: 1, max: 3 }), breaking)
  .map(([n, allow_negative, callers, at]) =>
    command(
      `${callers} debit ${n} under one key${allow_negative ? ', and may owe' : ''}`,
      at,
      async (ledger, real, key) => {
        const body = {
          credits: String(n),
          transaction_reason: 'MANUAL_BALANCE_DEBIT',
          idempotency_key: key,
          allow_negative,
        };
        const request = debitShape.parse(body);
        const { scope } = real.api;
        const { id } = real.wallet;
        const debit = (stores: Stores) => debitWallet(stores, scope, { id, request, author: real.author });
        const answers = await surely(real, at, (stores) => allOf(Array.from({ length: callers }, () => debit(stores))));
        const isDone = ledger.debit(n, allow_negative);
        if (answers instanceof FarthingError) {
          expect([answers.code, answers.details?.['field'], isDone]).to.deep.equal([
            'invalid_operation',
            'credits',
            false,
          ]);
          return;
        }
        expect(isDone).to.equal(true);
        expect(new Set(answers.map(({ wallet_transaction }) => wallet_transaction.id)).size).to.equal(1);
      },
    ),
  );

const invoice: fc.Arbitrary<Command> = fc.tuple(credits, breaking).map(([n, at]) =>
  command(`an invoice of ${n}`, at, async (ledger, real, key) => {
    const request = finalInvoice({ customer_id: real.wallet.customer_id, amount: String(n), idempotency_key: key });
    const made = await surely(real, at, (stores) => createInvoice(stores, real.api.scope, request, real.author));
    const row = await real.api.services.postgres('invoices').where({ idempotency_key: key }).first();
    if (made instanceof FarthingError && !row) throw made;
    const taken = ledger.take(n);
    expect(Number(row.total_prepaid_credits_applied)).to.equal(taken.reduce((sum, part) => sum + part.n, 0));
    ledger.invoices.push({ key, taken, isVoid: false });
  }),
);

const voiding: fc.Arbitrary<Command> = fc.tuple(fc.nat(30), breaking).map(([nth, at]) =>
  command(`void the ${nth}th invoice`, at, async (ledger, real) => {
    const invoice = ledger.invoices[nth % Math.max(1, ledger.invoices.length)];
    if (!invoice || invoice.isVoid) return;
    const { scope, services } = real.api;
    const found = () => services.postgres('invoices').where({ idempotency_key: invoice.key }).first();
    const { id } = await found();
    const { author } = real;
    await surely(real, at, (stores) => voidInvoice(stores, scope, { id, metadata: null, author }));
    expect((await found()).invoice_status).to.equal('VOIDED');
    ledger.void(invoice);
  }),
);

const wait: fc.Arbitrary<Command> = fc.integer({ min: 1, max: 20_000 }).map((ms) =>
  command(`wait ${ms} ms`, null, async (ledger, real) => {
    ledger.now += ms;
    real.author = { ...real.author, now: new Date(START + ledger.now) };
  }),
);

const expire: fc.Arbitrary<Command> = breaking.map((at) =>
  command('what has expired is taken out', at, async (ledger, real) => {
    const { now } = real.author;
    await surely(real, at, async (stores) => {
      // Who is cut leaves the rest to the next.
      const { failed } = await expireCredits(stores, { now, only: real.api.scope });
      if (failed.length > 0) throw failed[0]!.error;
    });
    ledger.expire();
  }),
);

const commands = [topUp, topUp, debit, invoice, invoice, voiding, voiding, wait, expire];

/** When all have ended, so that nothing goes on behind a failure. */
async function allOf<T>(works: Promise<T>[]): Promise<T[]> {
  const ended = await Promise.allSettled(works);
  return ended.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

describe('laws of wallets', function () {
  this.timeout(600_000);
  let api: TestApi;
  let way: Cut;
  let cuttable: Knex;

  before(async () => {
    api = await startTestApi({ now: new Date(START) });
    const url = new URL(readUrl(api.services.postgres));
    way = await cutTo({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(way.port);
    url.searchParams.delete('host');
    cuttable = connectPostgres(url.href);
  });
  after(async () => {
    await cuttable?.destroy();
    await way?.close();
    await api.stop();
  });

  it('whatever comes in whichever order, and breaks off wherever, it is what a plain ledger says', async () => {
    let runs = 0;
    const law = fc.asyncProperty(fc.commands(commands, { maxCommands: 40, size: 'max' }), async (some) => {
      const external_customer_id = `customer ${++runs}`;
      expect(
        (await api.request('POST', '/customers', { body: { external_id: external_customer_id } })).status,
      ).to.equal(201);
      const config = { allowed_price_types: ['ALL'] };
      const made = await api.request('POST', '/wallets', { body: { external_customer_id, currency: 'usd', config } });
      expect(made.status, made.text).to.equal(200);
      const stores = { ...api.services, postgres: cuttable };
      const author = { user_id: 'user_1', now: new Date(START) };
      const real: Real = { api, stores, way, wallet: made.body, run: runs, deeds: 0, author };
      await fc.asyncModelRun(() => ({ model: new Ledger(), real }), some);
      const findings: unknown[] = [];
      await auditCredits(api.services, (finding) => findings.push(finding));
      expect(findings).to.deep.equal([]);
    });
    await fc.assert(law, { numRuns: samples(20) });
    console.log(`      ${runs} wallets, cut ${breaks} times`);
    // Of a few there may be none.
    if (runs >= 20) expect(breaks, 'some were cut').to.be.above(0);
  });
});
