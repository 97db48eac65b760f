/** Whoever buys credits, and whoever makes invoices final, of one customer with wallets in two currencies: nobody waits in a circle (docs/rules/wallets.md, "Who waits for whom"). */
import { expect } from 'chai';
import { autoTopUp } from '../../actions/wallets/auto-top-up.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

// Answers of every shape.
type Answer = any;

const ROUNDS = 6;

describe('scenario: wallets in two currencies', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-02-02T00:00:00Z' });
    await world.plan('Ahead', [fixed('5', { invoice_cadence: 'ADVANCE' })]);
  });
  after(() => world.stop());

  const walletOf = (customer: string, currency: string, fields: object = {}): Promise<Answer> =>
    world.post('/wallets', { external_customer_id: customer, currency, ...fields });
  const draftOf = (customer: string): Promise<Answer> =>
    world.post('/invoices', {
      customer_id: world.id(`customer ${customer}`),
      currency: 'usd',
      amount_due: '5',
      total: '5',
      subtotal: '5',
    });
  const buy = ({ id }: Answer, idempotency_key: string) =>
    world.api.request('POST', `/wallets/${id}/top-up`, {
      body: { credits_to_add: '10', transaction_reason: 'PURCHASED_CREDIT_INVOICED', idempotency_key },
    });
  const act = (path: string) => world.api.request('POST', path, { body: {} });
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
    const refused: Answer[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const drafts: Answer[] = [];
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

  it('a wallet that fills itself waits for whoever makes an invoice final before it holds one', async () => {
    await world.customer('fills');
    const filling = { auto_topup: { enabled: true, threshold: '1', amount: '5', invoicing: true } };
    const made = [await walletOf('fills', 'usd', filling), await walletOf('fills', 'eur', filling)];
    const [first, second] = made.map(({ id }: Answer) => id).sort();
    const { services, scope } = world.api;
    const final = await services.postgres.transaction();
    try {
      const hold = (id: string) => final.raw('select id from wallets where id = ? for update', [id]);
      await hold(first);
      const filled = autoTopUp(services, scope, { id: second, now: world.now }).catch((error) => error);
      await until('the one that fills itself waits', async () => {
        const { rows } = await services.postgres.raw(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        return rows.length > 0;
      });
      await hold(second);
      await final.commit();
      expect(await filled).to.equal(1);
    } finally {
      if (!final.isCompleted()) await final.rollback();
    }
  });
});
