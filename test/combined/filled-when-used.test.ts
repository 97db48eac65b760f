/** docs/rules/wallets.md, "Automatic top-up": a wallet is looked at when usage lands or credits move, not by a job alone. */
import { expect } from 'chai';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { autoTopUp, topUpDueWallets } from '../../actions/lifecycle/wallets/auto-top-up.ts';
import { createWork } from '../../scheduler/main.ts';
import { ALERT_TASK } from '../../storage/progress/alert-arrivals.ts';
import type { Wallet } from '../support/answers.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('a wallet that fills itself', () => {
  let world: World;
  let wallet: Wallet;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '1')]);
    const { customer_id } = await world.subscribe('acme', 'Calls');
    const auto_topup = { enabled: true, threshold: '20', amount: '50', invoicing: false };
    wallet = await world.post('/wallets', { customer_id, currency: 'usd', auto_topup });
  });
  after(() => world.stop());

  const postgres = () => world.api.services.postgres;
  const asked = () => postgres()('graphile_worker.jobs').where('key', 'like', 'alerts:%').select('key');
  /** What is in the queue is done, as the scheduler does it. */
  async function lookedAt(customer_id = wallet.customer_id): Promise<void> {
    await until('it is asked for', async () => (await asked()).some(({ key }) => key === `alerts:${customer_id}`));
    await world.waitForPipeline();
    await postgres().raw(`delete from graphile_worker._private_jobs`);
    const work = createWork(world.api.services, () => world.now).find(({ name }) => name === ALERT_TASK)!;
    const payload = { ...world.api.scope, customer_id };
    await work.run(payload, { attempt: 1, is_last: true, signal: AbortSignal.timeout(60_000) } as never);
  }
  const credits = async () => (await world.get(`/wallets/${wallet.id}`)).credit_balance;

  it('is filled when usage lands that brings it to its threshold', async () => {
    await world.post(`/wallets/${wallet.id}/top-up`, {
      credits_to_add: '30',
      transaction_reason: 'FREE_CREDIT_GRANT',
    });
    await lookedAt();
    expect(await credits()).to.equal('30');
    await world.use('acme', 'calls', 12);
    await lookedAt();
    expect(await credits()).to.equal('80');
  });

  it('and when credits are taken from it', async () => {
    await world.post(`/wallets/${wallet.id}/debit`, {
      credits: '60',
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      idempotency_key: 'take',
    });
    await lookedAt();
    expect(await credits()).to.equal('70');
  });

  it('and when usage lands of whom its customer pays for, in a group', async () => {
    world.at('2026-01-01T00:00:00Z');
    const child = await world.subscribe('branch', 'Calls');
    const inheritance = { subscriptions_ids_for_grouped_invoicing: [child.id] };
    const parent = await world.subscribe('head office', 'Calls', { inheritance });
    const auto_topup = { enabled: true, threshold: '20', amount: '50', invoicing: false };
    const { id } = await world.post('/wallets', { customer_id: parent.customer_id, currency: 'usd', auto_topup });
    const free = { credits_to_add: '30', transaction_reason: 'FREE_CREDIT_GRANT' };
    await world.post(`/wallets/${id}/top-up`, free);
    await lookedAt(parent.customer_id);
    await world.use('branch', 'calls', 12);
    await lookedAt(parent.customer_id);
    expect((await world.get(`/wallets/${id}`)).credit_balance).to.equal('80');
  });

  it('and when an event that was counted is corrected to more', async () => {
    await world.use('acme', 'calls', 1, { event_id: 'corrected' });
    await lookedAt();
    expect(await credits()).to.equal('70');
    await world.replace('corrected', world.event('acme', 'calls', { n: 50 }));
    await lookedAt();
    expect(await credits()).to.equal('120');
  });

  it('with an invoice is filled once until that is paid, also where nothing but the invoice tells of it', async () => {
    const { services, scope } = world.api;
    await world.customer('invoiced');
    const customer_id = world.id('customer invoiced');
    const auto_topup = { enabled: true, threshold: '20', amount: '50', invoicing: true };
    const { id } = await world.post('/wallets', { customer_id, currency: 'usd', auto_topup });
    const fill = () => autoTopUp(services, scope, { id, now: world.now });
    const invoices = async () => (await world.post('/invoices/search', { customer_id })).items;
    const pay = async (invoice: { id: string; amount_remaining: string }) => {
      const body = { payment_status: 'SUCCEEDED', amount: invoice.amount_remaining };
      const { status, text } = await world.api.request('PUT', `/invoices/${invoice.id}/payment`, { body });
      expect(status, text).to.equal(200);
    };
    expect([await fill(), await fill()]).to.deep.equal([1, 0]);
    const [first] = await invoices();
    await pay(first!);
    expect((await world.get(`/wallets/${id}`)).credit_balance).to.equal('50');
    const { items } = await world.get(`/wallets/${id}/transactions`);
    expect(items.map(({ description }) => description)).to.deep.equal(['Filled by itself']);
    await world.post(`/wallets/${id}/debit`, {
      credits: '30',
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      idempotency_key: 'spend',
    });
    // One that was made elsewhere, for which no credits are pending here.
    const amounts = { amount_due: '50', total: '50', subtotal: '50' };
    const elsewhere = await world.post('/invoices', {
      customer_id,
      currency: 'usd',
      invoice_type: 'ONE_OFF',
      invoice_status: 'FINALIZED',
      billing_reason: 'WALLET_AUTO_TOPUP',
      metadata: { wallet_id: id },
      ...amounts,
      line_items: [{ display_name: '50 credits', amount: '50', quantity: '1' }],
    });
    expect(await fill()).to.equal(0);
    await pay(await world.get(`/invoices/${elsewhere.id}`));
    expect(await fill(), 'at the threshold').to.equal(1);
  });

  it('is not filled because of an invoice that becomes final while it is looked at', async () => {
    world.at('2026-01-01T00:00:00Z');
    const { customer_id } = await world.subscribe('final', 'Calls');
    const filling = { enabled: true, threshold: '10', amount: '100', invoicing: false };
    const { id } = await world.post('/wallets', { customer_id, currency: 'usd', auto_topup: filling });
    const free = { credits_to_add: '100', transaction_reason: 'FREE_CREDIT_GRANT' };
    await world.post(`/wallets/${id}/top-up`, free);
    await world.use('final', 'calls', 80, { at: '2026-01-10T00:00:00Z' });
    await world.waitForPipeline();
    await world.on('2026-02-01T00:00:00Z');
    const draft = (await world.invoices('final')).find(({ invoice_status }) => invoice_status === 'DRAFT');
    let filled: Promise<number> | undefined;
    await postgres().transaction(async (transaction) => {
      await transaction.raw('select id from customers where id = ? for update', [customer_id]);
      filled = autoTopUp(world.api.services, world.api.scope, { id, now: world.now });
      await until('it waits for the customer', async () => {
        const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%customers%'`;
        return (await postgres().raw(waiting)).rows.length > 0;
      });
      await world.post(`/invoices/${draft!.id}/finalize`, {});
    });
    expect([await filled, (await world.get(`/wallets/${id}`)).credit_balance]).to.deep.equal([0, '20']);
  });

  it('asks for no look at itself because it has filled itself: the rest comes with the next look', async () => {
    const { customer_id } = await world.subscribe('deep', 'Calls');
    const auto_topup = { threshold: '1000000', amount: '1', invoicing: false };
    const { id } = await world.post('/wallets', { customer_id, currency: 'usd', auto_topup });
    await postgres().raw(`delete from graphile_worker._private_jobs`);
    const fill = () => autoTopUp(world.api.services, world.api.scope, { id, now: world.now });
    expect(await fill()).to.equal(100);
    expect(await asked()).to.deep.equal([]);
    // Whoever is told of balances is: what is in it has changed.
    await world.api.request('PUT', '/settings/wallet_balance_alert_config', {
      body: { value: { alert_enabled: true, critical: { threshold: '1' } } },
    });
    expect(await fill()).to.equal(100);
    expect((await asked()).filter(({ key }) => key === `alerts:${customer_id}`)).to.deep.equal([]);
    const { rows } = await postgres().raw(
      `select job.payload ->> 'fills' as fills from graphile_worker._private_jobs job where job.key = ?`,
      [`alerts-alone:${customer_id}`],
    );
    expect(rows).to.deep.equal([{ fills: 'false' }]);
    const work = createWork(world.api.services, () => world.now).find(({ name }) => name === ALERT_TASK)!;
    const job = { attempt: 1, is_last: true, signal: AbortSignal.timeout(60_000) } as never;
    await work.run({ ...world.api.scope, customer_id, fills: false }, job);
    expect((await world.get(`/wallets/${id}`)).credit_balance).to.equal('200');
    await work.run({ ...world.api.scope, customer_id }, job);
    expect((await world.get(`/wallets/${id}`)).credit_balance).to.equal('300');
    await world.api.request('PUT', '/settings/wallet_balance_alert_config', {
      body: { value: { alert_enabled: false } },
    });
  });

  it('what a caller calls an automatic one in the metadata of a purchase is none', async () => {
    const { customer_id } = await world.subscribe('pretends', 'Calls');
    const auto_topup = { threshold: '5', amount: '20', invoicing: true };
    const { id } = await world.post('/wallets', { customer_id, currency: 'usd', auto_topup });
    const metadata = { auto_topup: 'true' };
    const invoiced = { transaction_reason: 'PURCHASED_CREDIT_INVOICED', metadata };
    await world.post(`/wallets/${id}/top-up`, { credits_to_add: '3', ...invoiced });
    const fill = () => autoTopUp(world.api.services, world.api.scope, { id, now: world.now });
    expect([await fill(), await fill()]).to.deep.equal([1, 0]);
    const cooled = { ...auto_topup, invoicing: false, cooldown: { value: 1, unit: 'day' } };
    const { customer_id: other_id } = await world.subscribe('pretends too', 'Calls');
    const purse = { customer_id: other_id, currency: 'usd', auto_topup: cooled };
    const { id: other } = await world.post('/wallets', purse);
    const direct = { transaction_reason: 'PURCHASED_CREDIT_DIRECT', metadata };
    await world.post(`/wallets/${other}/top-up`, { credits_to_add: '3', ...direct });
    const fillOther = () => autoTopUp(world.api.services, world.api.scope, { id: other, now: world.now });
    expect([await fillOther(), await fillOther()]).to.deep.equal([1, 0]);
  });

  it('what was filled before it had keys of its own is still known', async () => {
    const { customer_id } = await world.subscribe('older', 'Calls');
    const auto_topup = { threshold: '5', amount: '20', invoicing: true };
    const { id } = await world.post('/wallets', { customer_id, currency: 'usd', auto_topup });
    const fill = () => autoTopUp(world.api.services, world.api.scope, { id, now: world.now });
    expect(await fill()).to.equal(1);
    await postgres().raw(
      `update wallet_transactions set idempotency_key = replace(idempotency_key, 'farthing/auto_topup/', 'farthing/request/') where wallet_id = ?`,
      [id],
    );
    // Its invoice alone would hold the next one off.
    await postgres().raw(`update invoices set metadata = null where customer_id = ?`, [customer_id]);
    expect(await fill()).to.equal(0);
  });

  it('is not asked for where nothing fills itself', async () => {
    const body = { auto_topup: { enabled: false, threshold: '20', amount: '50', invoicing: false } };
    expect((await world.api.request('PUT', `/wallets/${wallet.id}`, { body })).status).to.equal(200);
    await postgres().raw(`delete from graphile_worker._private_jobs`);
    await world.use('acme', 'calls', 1);
    await world.waitForPipeline();
    expect(await asked()).to.deep.equal([]);
  });

  it('and when usage lands of a child that pays for itself, since its parent ends inside the period', async () => {
    world.at('2026-01-01T00:00:00Z');
    const child = await world.subscribe('leaving branch', 'Calls');
    const inheritance = { subscriptions_ids_for_grouped_invoicing: [child.id] };
    await world.subscribe('ending office', 'Calls', { inheritance });
    const cancelled = { cancellation_type: 'scheduled_date', cancel_at: '2026-01-15T00:00:00Z' };
    await world.cancel('ending office', { ...cancelled, proration_behavior: 'none' });
    const auto_topup = { enabled: true, threshold: '20', amount: '50', invoicing: false };
    const { id } = await world.post('/wallets', { customer_id: child.customer_id, currency: 'usd', auto_topup });
    await world.post(`/wallets/${id}/top-up`, { credits_to_add: '30', transaction_reason: 'FREE_CREDIT_GRANT' });
    await lookedAt(child.customer_id);
    await world.use('leaving branch', 'calls', 12);
    await world.waitForPipeline();
    await lookedAt(child.customer_id);
    expect((await world.get(`/wallets/${id}`)).credit_balance).to.equal('80');
  });

  it('by invoices, each charged to the default way to pay of its customer; without one it waits', async () => {
    await world.on('2026-01-20');
    for (const name of ['carded', 'bare']) await world.subscribe(name, 'Calls');
    const method = {
      gateway_payment_method_id: 'pm_sandbox_card',
      payment_method_type: 'CARD',
      payment_gateway: 'sandbox',
    };
    await world.post(`/payments/customers/${world.id('customer carded')}/methods`, method);
    const auto_topup = { enabled: true, threshold: '20', amount: '50', invoicing: true };
    const found: (string | string[])[][] = [];
    for (const name of ['carded', 'bare']) {
      const customer_id = world.id(`customer ${name}`);
      const { id } = await world.post('/wallets', { customer_id, currency: 'usd', auto_topup });
      await topUpDueWallets(world.api.services, { now: world.now });
      await processDuePayments(world.api.services, { now: world.now });
      const { items } = await world.get(`/invoices?customer_id=${customer_id}`);
      const invoices = items.map(({ billing_reason, payment_status }) => `${billing_reason} ${payment_status}`);
      found.push([invoices, (await world.get(`/wallets/${id}`)).credit_balance]);
    }
    expect(found).to.deep.equal([
      [['WALLET_AUTO_TOPUP SUCCEEDED'], '50'],
      [['WALLET_AUTO_TOPUP PENDING'], '0'],
    ]);
  });
});
