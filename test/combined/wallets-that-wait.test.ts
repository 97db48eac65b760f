/** Prepaid credits that many take and give back at one moment (docs/rules/wallets.md). */
import { expect } from 'chai';
import { prepaid, startPrepaidWorld } from '../support/prepaid.ts';
import { fixed, usage, type World } from '../support/world.ts';

describe('scenario: prepaid credits of many at once', () => {
  let world: World;
  before(async () => {
    world = await startPrepaidWorld();
  });
  after(() => world.stop());

  const { ok, walletOf, topUp, january, finalOf, purseOf, oneOff } = prepaid(() => world);

  it('two who make it final at once take once', async () => {
    const wallet = await january('race', (id) => topUp(id, '500'));
    await world.on('2026-02-01');
    const { items } = await ok('POST', '/invoices/search', { customer_id: world.id('customer race') });
    const { id } = items.find((one) => one.invoice_status === 'DRAFT')!;
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => world.api.request('POST', `/invoices/${id}/finalize`, { body: {} })),
    );
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    expect((await world.get(`/wallets/${wallet.id}`)).credit_balance).to.equal('380');
  });

  it('who makes an invoice final, by hand or with a plan change, and who buys credits wait for each other in one order', async () => {
    const { postgres } = world.api.services;
    const deadlocks = async (): Promise<number> => {
      await postgres.raw('select pg_stat_force_next_flush()');
      const { rows } = await postgres.raw(
        'select deadlocks::int from pg_stat_database where datname = current_database()',
      );
      return rows[0].deadlocks;
    };
    await world.plan('Low', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    await world.plan('High', [fixed('100', { invoice_cadence: 'ADVANCE' })]);
    const grant = { name: 'C', scope: 'PLAN', plan_id: world.id('plan High'), credits: '5', cadence: 'ONETIME' };
    await ok('POST', '/creditgrants', grant);
    const before = await deadlocks();
    for (const name of ['one', 'two', 'three', 'four']) {
      world.at('2026-05-01T00:00:00Z');
      await world.subscribe(name, 'Low');
      const { id } = await walletOf(name);
      world.at('2026-05-10T00:00:00Z');
      const changed = world.api.request('POST', `/subscriptions/${world.id(`subscription ${name}`)}/change/execute`, {
        body: {
          target_plan_id: world.id('plan High'),
          proration_behavior: 'create_prorations',
          billing_period: 'MONTHLY',
          billing_period_count: 1,
          billing_cadence: 'RECURRING',
          billing_cycle: 'anniversary',
        },
      });
      const body = { credits_to_add: '10', transaction_reason: 'PURCHASED_CREDIT_INVOICED' };
      const bought = [1, 2, 3, 4].map(() => world.api.request('POST', `/wallets/${id}/top-up`, { body }));
      for (const { status, text } of await Promise.all([changed, ...bought])) expect(status, text).to.be.below(300);
      await topUp(id, '500');
      await ok('PUT', `/wallets/${id}`, { config: { allowed_price_types: ['ALL'] } });
      await world.on('2026-06-01');
      const { items } = await ok('POST', '/invoices/search', { customer_id: world.id(`customer ${name}`) });
      const draft = items.find((one) => one.invoice_status === 'DRAFT');
      const computed = [1, 2, 3, 4].map(() => world.api.request('POST', `/invoices/${draft!.id}/recalculate-v2`));
      const answers = await Promise.all([world.api.request('POST', `/invoices/${draft!.id}/finalize`), ...computed]);
      expect(answers[0]!.status, answers[0]!.text).to.equal(200);
      for (const { status, text } of answers) expect(status, text).to.be.below(500);
    }
    expect((await deadlocks()) - before).to.equal(0);
  });

  it('who gives back to one wallet at once waits for nobody who waits for them', async () => {
    for (let round = 0; round < 4; round++) {
      const wallet = await purseOf(`crowd ${round}`);
      await topUp(wallet.id, '40');
      const mixed = await oneOff(wallet, '100');
      const others = [await oneOff(wallet, '10'), await oneOff(wallet, '10'), await oneOff(wallet, '10')];
      for (const { id, amount_remaining: amount } of [mixed, ...others]) {
        const paid = { payment_method_type: 'OFFLINE', amount, currency: 'usd', idempotency_key: id };
        await ok('POST', '/payments', { destination_type: 'INVOICE', destination_id: id, ...paid });
      }
      const answers = await Promise.all(
        [...others, mixed].map(({ id }) => world.api.request('POST', `/invoices/${id}/void`)),
      );
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200]);
      expect((await world.get(`/wallets/${wallet.id}`)).balance).to.equal('130');
    }
  });

  it('count on credits that come back with corrected usage: they pay usage of the next invoice, and no fee', async () => {
    const name = 'given back';
    await world.meter('given');
    await world.plan('Given back', [usage('given', '1'), fixed('31')]);
    await world.on('2026-06-01', () => world.subscribe(name, 'Given back'));
    const wallet = await ok('POST', '/wallets', { external_customer_id: name, currency: 'usd' });
    await topUp(wallet.id, '100');
    await world.on('2026-06-10', () => world.use(name, 'given', 40, { event_id: 'given_1' }));
    await world.on('2026-07-02');
    await finalOf(name);
    await ok('POST', '/events/given_1/void', { reason: 'never was' });
    await world.waitForPipeline();
    const balance = async () => {
      const { credit_balance, real_time_credit_balance, current_period_usage } = await world.get(
        `/wallets/${wallet.id}/balance/real-time`,
      );
      return [credit_balance, real_time_credit_balance, current_period_usage].map(Number);
    };
    // The 40 return with the next invoice, and wait for usage until then.
    expect(await balance()).to.deep.equal([60, 60, 0]);
    await world.on('2026-07-10', () => world.use(name, 'given', 30));
    await world.waitForPipeline();
    // They pay these 30.
    expect(await balance()).to.deep.equal([60, 60, 0]);
    const held = { external_customer_id: name, credits: '61', hold: { ttl_seconds: 60 } };
    expect((await ok('POST', '/entitlements/check', held)).allowed).to.equal(false);
    await world.on('2026-07-11', () => world.use(name, 'given', 20));
    await world.waitForPipeline();
    // 30 + 20 - 40.
    expect(await balance()).to.deep.equal([60, 50, 10]);
    await world.on('2026-08-02');
    await finalOf(name);
    expect((await world.get(`/wallets/${wallet.id}`)).credit_balance).to.equal('50');
  });
});
