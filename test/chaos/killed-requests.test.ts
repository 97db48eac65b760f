/**
 * kill -9 of a process that has done what a request with an Idempotency-Key asked for, before its answer is kept: whoever sends the same
 * request again gets the answer, and nothing is done a second time (docs/rules/errors.md, "Sending a request again").
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import type { TestAnswer } from '../support/api.ts';
import { startApiProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

type Asked<Path extends string> = { path: Path; body: Record<string, unknown> };

/** Where the process waits when it is killed. */
const ANSWERED = { table: 'idempotency_keys', when: 'new.http_status is not null' };
const CHARGING = { table: 'payment_attempts', when: 'true' };

describe('a request whose process is killed before it could answer', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const { scope, services } = world.api;
    await services.postgres('environments').where({ id: scope.environment_id }).update({ type: 'development' });
    for (const [plan, amount] of [
      ['Pro', '10'],
      ['Team', '40'],
    ] as const)
      await world.plan(plan, [fixed(amount, { invoice_cadence: 'ADVANCE' })]);
    const value = { default_gateway: 'sandbox' };
    const { status } = await world.api.request('PUT', '/settings/payment_config', { body: { value } });
    expect(status).to.equal(200);
  });
  after(() => world.stop());

  const postgres = () => world.api.services.postgres;
  const waiting = () => postgres()('pg_locks').where({ locktype: 'advisory', granted: false, objid: 78 });
  const count = async (table: string, where: Record<string, unknown> = {}): Promise<number> =>
    Number((await postgres()(table).where(where).count())[0]!.count);
  let lastKey = 0;

  /** Sends it, kills whoever does it at this place, and answers what the same request is answered after the lease. */
  async function killedAt<Path extends string>(
    { table, when }: typeof ANSWERED,
    { path, body }: Asked<Path>,
    is_answered = true,
  ) {
    const headers = { 'idempotency-key': `key-${++lastKey}` };
    await postgres().raw(`
      create or replace function wait_to_die() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(78); return new; end $$;
      create trigger wait_to_die before insert or update on ${table} for each row when (${when}) execute function wait_to_die()`);
    const holding = await postgres().transaction();
    await holding.raw('select pg_advisory_xact_lock(78)');
    const { child, url } = await startApiProcess(world.api.services, world.now);
    const sent = world.api.request('POST', `${url}/v1${path}`, { body, headers }).catch((error: Error) => error);
    let answered: TestAnswer | Error | undefined;
    void sent.then((answer) => (answered = answer));
    await until('it is in the middle', async () => answered !== undefined || (await waiting()).length > 0, 60_000);
    if (answered) await holding.rollback();
    expect((answered as TestAnswer | undefined)?.text).to.equal(undefined);
    await ended(child);
    // A statement that nobody waits for any more would go on and commit.
    await waiting().select(postgres().raw('pg_terminate_backend(pid)'));
    await holding.rollback();
    expect(await sent).to.be.instanceOf(Error);
    await until('nothing of it is left', async () => (await waiting()).length === 0);
    await postgres().raw(`drop trigger wait_to_die on ${table}`);

    const again = () => world.api.request('POST', path, { body, headers });
    expect((await again()).status).to.equal(409);
    await postgres()('idempotency_keys').update({ leased_until: postgres().raw('now()') });
    // Equal requests of one minute would be one anyhow.
    world.at(new Date(world.now.getTime() + 120_000).toISOString());
    const answer = await again();
    if (!is_answered) return answer;
    const third = await again();
    expect([third.status, third.text]).to.deep.equal([answer.status, answer.text]);
    expect(third.headers.get('idempotency-replayed')).to.equal('true');
    expect(await count('request_effects')).to.equal(0);
    return answer;
  }

  async function ended(child: ChildProcess): Promise<void> {
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  async function payer(name: string): Promise<string> {
    await world.customer(name);
    const id = world.id(`customer ${name}`);
    await world.post(`/payments/customers/${id}/methods`, { gateway_payment_method_id: 'pm_sandbox_card' });
    return id;
  }

  const subscribing = (customer_id: string): Asked<'/subscriptions'> => ({
    path: '/subscriptions',
    body: {
      customer_id,
      plan_id: world.id('plan Pro'),
      currency: 'usd',
      billing_period: 'MONTHLY',
      start_date: world.now.toISOString(),
      gateway_payment_method_id: 'pm_sandbox_card',
    },
  });

  async function invoiceOf(customer_id: string) {
    const body = {
      customer_id,
      currency: 'usd',
      amount_due: '100',
      total: '100',
      subtotal: '100',
      invoice_status: 'FINALIZED',
    };
    return world.post('/invoices', { ...body, description: 'Once' });
  }

  for (const [where, place] of [
    ['answered', ANSWERED],
    ['charged', CHARGING],
  ] as const)
    it(`one subscription, charged once: killed before it is ${where}`, async () => {
      const customer_id = await payer(`subscriber ${where}`);
      const { status, body } = await killedAt(place, subscribing(customer_id));
      expect(status, JSON.stringify(body)).to.equal(201);
      expect([body.subscription_status, body.latest_invoice!.payment_status]).to.deep.equal(['active', 'SUCCEEDED']);
      expect(await count('subscriptions', { customer_id })).to.equal(1);
      expect(await count('invoices', { customer_id })).to.equal(1);
      const [invoice] = await postgres()('invoices').where({ customer_id });
      expect(invoice.amount_paid).to.equal('10');
      expect(await count('payments', { destination_id: invoice.id })).to.equal(1);
    }).timeout(120_000);

  it('events without ids, counted once', async () => {
    await world.meter('calls');
    const usage = (units: number) => ({
      event_name: 'calls',
      external_customer_id: 'nameless',
      properties: { n: units },
      timestamp: '2025-12-31T10:00:00Z',
    });
    const [one, two] = [usage(1), usage(1)];
    const single = await killedAt(ANSWERED, { path: '/events', body: one });
    const checked = await killedAt(ANSWERED, { path: '/events/bulk', body: { events: [one, two] } });
    const misspelt = { ...two, timestap: two.timestamp };
    const judged = await killedAt(ANSWERED, {
      path: '/events/bulk?verdicts=true',
      body: { events: [misspelt, one, two] },
    });
    expect([single.status, checked.status, judged.status]).to.deep.equal([202, 202, 202]);
    const [refused, ...accepted] = (judged.body as { verdicts: { event_id: string | null }[] }).verdicts;
    expect([refused!.event_id, new Set(accepted.map((one) => one.event_id)).size]).to.deep.equal([null, 2]);
    await world.waitForPipeline();
    const asked = { external_customer_id: 'nameless', meter_id: world.id('meter calls') };
    const range = { start_time: '2025-12-01T00:00:00Z', end_time: '2026-01-01T00:00:00Z' };
    const { value: counted } = await world.post('/events/usage/meter', { ...asked, ...range });
    expect(counted).to.equal('5');
  }).timeout(240_000);

  it('one payment by card', async () => {
    const { id } = await invoiceOf(await payer('card'));
    const request = {
      destination_type: 'INVOICE',
      destination_id: id,
      payment_method_type: 'CARD',
      amount: '30',
      currency: 'usd',
    };
    const { status, body } = await killedAt(ANSWERED, { path: '/payments', body: request });
    expect([status, body.payment_status]).to.deep.equal([201, 'SUCCEEDED']);
    expect((await world.get(`/invoices/${id}`)).amount_paid).to.equal('30');
    expect(await count('payments', { destination_id: id })).to.equal(1);
  }).timeout(120_000);

  it('one refund', async () => {
    const { id } = await invoiceOf(await payer('refund'));
    const request = {
      destination_type: 'INVOICE',
      destination_id: id,
      payment_method_type: 'CARD',
      amount: '100',
      currency: 'usd',
    };
    const payment = await world.post('/payments', request);
    const { status, body } = await killedAt(ANSWERED, {
      path: `/payments/${payment.id}/refund`,
      body: { amount: '30' },
    });
    expect([status, body.refunded_amount]).to.deep.equal([200, '30']);
    expect(await count('payment_refunds', { payment_id: payment.id })).to.equal(1);
  }).timeout(120_000);

  it('one change of plan, with the answer that the first one had', async () => {
    const customer_id = await payer('changer');
    const { id } = await world.post('/subscriptions', subscribing(customer_id).body);
    const terms = { billing_cadence: 'RECURRING', billing_period: 'MONTHLY', billing_cycle: 'anniversary' };
    const body = { target_plan_id: world.id('plan Team'), proration_behavior: 'create_prorations', ...terms };
    const before = await count('invoices', { customer_id });
    const answer = await killedAt(ANSWERED, { path: `/subscriptions/${id}/change/execute`, body });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.change_type).to.equal('upgrade');
    expect(answer.body.old_subscription.plan_id).to.equal(world.id('plan Pro'));
    expect(answer.body.new_subscription.plan_id).to.equal(world.id('plan Team'));
    expect(await count('invoices', { customer_id })).to.equal(before + 1);
  }).timeout(120_000);

  it('one change of plan by the second version, and one modification', async () => {
    const customer_id = await payer('modifier');
    const { id } = await world.post('/subscriptions', subscribing(customer_id).body);
    const change = { target_plan_id: world.id('plan Team'), proration_behavior: 'create_prorations' };
    const answer = await killedAt(ANSWERED, { path: `/subscriptions/${id}/change/v2/execute`, body: change });
    expect(answer.status, answer.text).to.equal(200);
    expect([answer.body.change_type, answer.body.subscription!.plan_id]).to.deep.equal([
      'upgrade',
      world.id('plan Team'),
    ]);
    const line_items = await postgres()('subscription_line_items').where({ subscription_id: id, end_date: null });
    const more = {
      type: 'quantity_change',
      quantity_change_params: { line_items: [{ id: line_items[0].id, quantity: '3' }] },
    };
    const before = await count('invoices', { customer_id });
    const modified = await killedAt(ANSWERED, { path: `/subscriptions/${id}/modify/execute`, body: more });
    expect(modified.status, modified.text).to.equal(200);
    expect(modified.body.changed_resources.line_items.map((line) => line.change_action).sort()).to.deep.equal([
      'created',
      'ended',
    ]);
    expect(modified.body.subscription!.id).to.equal(id);
    expect(await count('invoices', { customer_id })).to.equal(before + 1);
    const over = await killedAt(ANSWERED, {
      path: `/subscriptions/${id}/cancel`,
      body: { cancellation_type: 'immediate', proration_behavior: 'create_prorations', reason: 'Enough' },
    });
    expect([over.status, over.body.status, over.body.reason], over.text).to.deep.equal([200, 'cancelled', 'Enough']);
    expect(over.body.total_credit_amount).to.not.equal('0');
  }).timeout(240_000);

  it('one top-up of a wallet', async () => {
    const customer_id = await payer('saver');
    const { id } = await world.post('/wallets', { customer_id, currency: 'usd' });
    const body = { credits_to_add: '20', transaction_reason: 'FREE_CREDIT_GRANT' };
    const answer = await killedAt(ANSWERED, { path: `/wallets/${id}/top-up`, body });
    expect([answer.status, answer.body.wallet?.credit_balance], answer.text).to.deep.equal([200, '20']);
    expect(await count('wallet_transactions', { wallet_id: id })).to.equal(1);
  }).timeout(120_000);

  it('one customer, which is read again', async () => {
    const body = { name: 'Once', external_id: 'once' };
    const answer = await killedAt(ANSWERED, { path: '/customers', body });
    expect([answer.status, answer.body.external_id], answer.text).to.deep.equal([201, 'once']);
    expect(await count('customers', { external_id: 'once' })).to.equal(1);
  }).timeout(120_000);

  it('one invoice, and one finalization', async () => {
    const customer_id = await payer('invoiced');
    const invoice = { customer_id, currency: 'usd', amount_due: '7', total: '7', subtotal: '7', description: 'Once' };
    const made = await killedAt(ANSWERED, { path: '/invoices', body: invoice });
    expect([made.status, made.body.total], made.text).to.deep.equal([201, '7']);
    expect(await count('invoices', { customer_id })).to.equal(1);
    const done = await killedAt(ANSWERED, { path: `/invoices/${made.body.id}/finalize`, body: {} });
    expect(done.status, done.text).to.equal(200);
    const { invoice_number } = await world.get(`/invoices/${made.body.id}`);
    expect(done.body.message).to.contain(invoice_number);
  }).timeout(240_000);

  it('what is shown once is made once, and the answer says which it was', async () => {
    const before = await count('secrets');
    const { status, body } = await killedAt(
      ANSWERED,
      { path: '/secrets/api/keys', body: { name: 'Once', type: 'private_key' } },
      false,
    );
    expect([status, body.code]).to.deep.equal([409, 'already_exists']);
    const { entity_type, id } = (body.details!.done as { entity_type: string; id: string }[])[0]!;
    expect(entity_type).to.equal('api_key');
    expect(await count('secrets', { id })).to.equal(1);
    expect(await count('secrets')).to.equal(before + 1);
  }).timeout(120_000);
});
