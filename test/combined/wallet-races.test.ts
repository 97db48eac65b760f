/** Whoever buys credits, and whoever makes invoices final, of one customer with wallets in two currencies: nobody waits in a circle (docs/rules/wallets.md, "Who waits for whom"). */
import { expect } from 'chai';
import { expireCredits } from '../../actions/credits/wallets/expire-credits.ts';
import { lockInvoice } from '../../actions/invoicing/invoices/lock-invoice.ts';
import { voidLocked } from '../../actions/lifecycle/invoices/void-invoice.ts';
import { autoTopUp } from '../../actions/lifecycle/wallets/auto-top-up.ts';
import type { Invoice, Wallet } from '../support/answers.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

const ROUNDS = 6;

describe('scenario: wallets in two currencies', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-02-02T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Use', [usage('calls', '1')]);
  });
  after(() => world.stop());

  const walletOf = (customer: string, currency: string, fields: object = {}) =>
    world.post('/wallets', { external_customer_id: customer, currency, ...fields });
  const draftOf = (customer: string) =>
    world.post('/invoices', {
      customer_id: world.id(`customer ${customer}`),
      currency: 'usd',
      amount_due: '5',
      total: '5',
      subtotal: '5',
    });
  const buy = ({ id }: Wallet, idempotency_key: string) =>
    world.api.request('POST', `/wallets/${id}/top-up`, {
      body: { credits_to_add: '10', transaction_reason: 'PURCHASED_CREDIT_INVOICED', idempotency_key },
    });
  const act = <Path extends string>(path: Path) => world.api.request('POST', path, { body: {} });
  async function deadlocks(): Promise<number> {
    await world.api.services.postgres.raw('select pg_stat_force_next_flush()');
    const { rows } = await world.api.services.postgres.raw(
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    );
    return rows[0].deadlocks;
  }

  it('many at once, and each is answered', async function () {
    this.timeout(300_000);
    await world.customer('two');
    const usd = await walletOf('two', 'usd', { initial_credits_to_load: '3' });
    const eur = await walletOf('two', 'eur');
    const later = await walletOf('two', 'usd', { wallet_type: 'POST_PAID', initial_credits_to_load: '1000' });
    const before = await deadlocks();
    const refused: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const drafts: Invoice[] = [];
      for (let n = 0; n < 4; n++) drafts.push(await draftOf('two'));
      const paid = await draftOf('two');
      await act(`/invoices/${paid.id}/finalize`);
      const paying = { destination_type: 'INVOICE', destination_id: paid.id, payment_method_type: 'CREDITS' };
      const { amount_remaining: amount } = await world.get(`/invoices/${paid.id}`);
      if (amount !== '0') await world.post('/payments', { ...paying, amount, currency: 'usd' });
      const answers = await Promise.all([
        ...drafts.map(({ id }) => act(`/invoices/${id}/finalize`)),
        ...[usd, eur, later].flatMap((wallet) => [1, 2, 3].map((n) => buy(wallet, `${wallet.id} ${round} ${n}`))),
        act(`/invoices/${paid.id}/void`),
      ]);
      refused.push(...answers.filter(({ status }) => status >= 300).map(({ text }) => text));
    }
    expect([refused, (await deadlocks()) - before]).to.deep.equal([[], 0]);
  });

  const isWaiting = async () => {
    const { rows } = await world.api.services.postgres.raw(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length > 0;
  };
  /** It waits for who holds what it needs, or has ended without that. */
  const waits = (one: Promise<unknown>) => {
    let hasEnded = false;
    void one.finally(() => (hasEnded = true)).catch(() => undefined);
    return until('it waits, or has ended', async () => hasEnded || (await isWaiting()));
  };

  it('a wallet that fills itself waits for whoever makes an invoice final before it holds one', async () => {
    await world.customer('fills');
    const filling = { auto_topup: { enabled: true, threshold: '1', amount: '5', invoicing: true } };
    const made = [await walletOf('fills', 'usd', filling), await walletOf('fills', 'eur', filling)];
    const [first, second] = made.map(({ id }) => id).sort();
    const { services, scope } = world.api;
    const final = await services.postgres.transaction();
    try {
      const hold = (id: string) => final.raw('select id from wallets where id = ? for update', [id]);
      await hold(first!);
      const filled = autoTopUp(services, scope, { id: second!, now: world.now }).catch((error) => error);
      await waits(filled);
      await hold(second!);
      await final.commit();
      expect(await filled).to.equal(1);
    } finally {
      if (!final.isCompleted()) await final.rollback();
    }
  });

  it('credits that a void gives back meanwhile do not expire: they are there when it is billed again', async () => {
    world.at('2026-03-01T00:00:00Z');
    await world.customer('void');
    const wallet = await walletOf('void', 'usd');
    await world.post(`/wallets/${wallet.id}/top-up`, {
      credits_to_add: '10',
      transaction_reason: 'FREE_CREDIT_GRANT',
      expiry_date_utc: '2026-04-10T00:00:00Z',
    });
    await world.subscribe('void', 'Use', { start_date: '2026-03-01T00:00:00Z' });
    await world.use('void', 'calls', 4, { at: '2026-03-05T00:00:00Z' });
    await world.on('2026-04-01');
    await world.finalize();
    const { id } = (await world.invoices('void'))[0]!;
    world.at('2026-04-11T00:00:00Z');
    const { services, scope } = world.api;
    const author = { user_id: '', now: world.now };
    const expiring = await services.postgres.transaction(async (transaction) => {
      const held = await lockInvoice(transaction, scope, id);
      await voidLocked(services, transaction, { ...held, metadata: null, author });
      const job = expireCredits(services, { now: world.now });
      await waits(job);
      return { job };
    });
    expect(await expiring.job).to.deep.equal({ expired: 0, failed: [] });
    const again = await world.post(`/invoices/${id}/recalculate?finalize=true`, {});
    expect([again.total_prepaid_credits_applied, again.amount_due]).to.deep.equal(['4', '0']);
  });

  for (const named of ['customer_id', 'external_customer_id'])
    it(`who is archived meanwhile gets no wallet, named by ${named}`, async () => {
      await world.customer(named);
      const customer_id = world.id(`customer ${named}`);
      const body = { [named]: named === 'customer_id' ? customer_id : named, currency: 'usd' };
      const { services } = world.api;
      const making = await services.postgres.transaction(async (transaction) => {
        await transaction('customers').where({ id: customer_id }).update({ status: 'archived' });
        const answer = world.api.request('POST', '/wallets', { body });
        await waits(answer);
        return { answer };
      });
      expect((await making.answer).status).to.be.oneOf([400, 404]);
    });
});
