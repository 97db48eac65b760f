/** Requests lock several rows in one fixed order (actions/subscriptions/lock-in-order.ts), which prevents deadlocks. */
import { expect } from 'chai';
import { finalizeDueInvoices } from '../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

describe('scenario: one order of locks', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.plan('Advance', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    await world.plan('Arrear', [fixed('10')]);
    await world.api.request('PUT', '/settings/payment_config', { body: { value: { default_gateway: 'sandbox' } } });
  });
  after(() => world.stop());

  const ask = <Method extends string, Path extends string>(method: Method, path: Path, body?: unknown) =>
    world.api.request(method, path, body === undefined ? {} : { body });
  const deadlocks = async (): Promise<number> => {
    const { postgres } = world.api.services;
    await postgres.raw('select pg_stat_force_next_flush()');
    const { rows } = await postgres.raw(
      'select deadlocks::int from pg_stat_database where datname = current_database()',
    );
    return rows[0].deadlocks;
  };
  const isWaiting = async () => {
    const { postgres } = world.api.services;
    const waiting = await postgres('pg_stat_activity')
      .where({ wait_event_type: 'Lock' })
      .whereRaw('datname = current_database()');
    return waiting.length > 0;
  };

  it('a payment that keeps its card holds the subscription before the customer, as whoever makes a group', async () => {
    const subscription = await world.subscribe('card', 'Advance', { collection_method: 'send_invoice' });
    const [invoice] = await world.invoices('card');
    const payment = await world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: invoice!.id,
      payment_method_type: 'CARD',
      payment_method_id: 'pm_sandbox_card',
      amount: '10',
      currency: 'usd',
      save_card_and_make_default: true,
      process_payment: false,
    });
    const before = await deadlocks();
    const holder = await world.api.services.postgres.transaction();
    await holder('subscriptions').where({ id: subscription.id }).forUpdate();
    const processing = ask('POST', `/payments/${payment.id}/process`, {});
    await until('the payment waits', isWaiting);
    await holder('customers')
      .where({ id: world.id('customer card') })
      .forUpdate();
    await holder.rollback();
    const { status, body, text } = await processing;
    expect([status, body.payment_status], text).to.deep.equal([200, 'SUCCEEDED']);
    expect((await deadlocks()) - before).to.equal(0);
  });

  it('drafts that become final together are all held before the numbers', async () => {
    await world.subscribe('twice', 'Arrear');
    await world.on('2026-02-01');
    await world.subscribe('other', 'Arrear');
    await world.on('2026-03-01');
    // The counter of the month is there.
    await world.subscribe('counted', 'Advance');
    // Two of one subscription are two parts of the group; the other draft is in the second.
    const drafts = [...(await world.invoices('twice')), ...(await world.invoices('other'))];
    expect(drafts.map(({ invoice_status }) => invoice_status)).to.deep.equal(['DRAFT', 'DRAFT', 'DRAFT']);
    const before = await deadlocks();
    const { postgres } = world.api.services;
    const holder = await postgres.transaction();
    await holder('subscriptions')
      .where({ id: world.id('subscription other') })
      .forUpdate();
    const finalizing = finalizeDueInvoices(world.api.services, { now: world.now, delay_seconds: 0 });
    await until('the job waits', isWaiting);
    // As whoever finalizes it by hand does then.
    await holder('invoice_numbers').forUpdate();
    await holder.rollback();
    // Two are of whoever kept the card.
    expect(await finalizing).to.deep.equal({ finalized: 5, skipped: 0, waiting: [], without_seller: [], failed: [] });
    expect((await deadlocks()) - before).to.equal(0);
  });

  /** A final invoice of 10 that is paid, and what credits a part of it. */
  const paidInvoice = async (customer: string) => {
    await world.subscribe(customer, 'Advance', { collection_method: 'send_invoice' });
    const [invoice] = await world.invoices(customer);
    const paid = { destination_type: 'INVOICE', destination_id: invoice!.id, payment_method_type: 'OFFLINE' };
    await world.post('/payments', { ...paid, amount: '10', currency: 'usd' });
    const [line] = invoice!.line_items;
    return (amount: string, fields: object = {}) =>
      ask('POST', '/creditnotes', {
        ...{ invoice_id: invoice!.id, reason: 'SERVICE_ISSUE', ...fields },
        line_items: [{ invoice_line_item_id: line!.id, amount }],
      });
  };

  it('a refund holds the wallet before the numbers of credit notes', async () => {
    const refund = await paidInvoice('refunded');
    // The wallet and the counter are there.
    expect((await refund('1')).status).to.equal(201);
    const before = await deadlocks();
    const holder = await world.api.services.postgres.transaction();
    await holder('wallets')
      .where({ customer_id: world.id('customer refunded') })
      .forUpdate();
    const refunding = refund('2');
    await until('the note waits', isWaiting);
    await holder('credit_note_numbers').forUpdate();
    await holder.rollback();
    const { status, text } = await refunding;
    expect(status, text).to.equal(201);
    expect((await deadlocks()) - before).to.equal(0);
  });

  it('a number that a request names is passed over by a note that takes numbers at the same time', async () => {
    const [naming, counting] = [await paidInvoice('naming'), await paidInvoice('counting')];
    const last = (await counting('1')).body.credit_note_number;
    const next = last.replace(/\d+$/, (digits: string) => String(Number(digits) + 1).padStart(digits.length, '0'));
    const after = last.replace(/\d+$/, (digits: string) => String(Number(digits) + 2).padStart(digits.length, '0'));
    const holder = await world.api.services.postgres.transaction();
    await holder.raw('lock table credit_note_line_items in exclusive mode');
    const named = naming('2', { credit_note_number: next });
    await until('the note waits', isWaiting);
    const counted = counting('2');
    await holder.rollback();
    const numbers = (await Promise.all([named, counted])).map(({ status, body }) => [status, body.credit_note_number]);
    expect(numbers).to.deep.equal([
      [201, next],
      [201, after],
    ]);
  });

  it('a version that was read is compared once the subscription is held, by every verb of PUT', async () => {
    const verbs: [string, object][] = [
      ['cancel', { cancel_at_period_end: true }],
      ['in place', { lookup_key: 'a-key' }],
      ['join', { parent_subscription_id: (await world.subscribe('parent', 'Arrear')).id }],
      ['resume', { cancel_at_period_end: false }],
    ];
    for (const [customer, change] of verbs) {
      const { id } = await world.subscribe(customer, 'Arrear');
      if (customer === 'resume') await ask('PUT', `/subscriptions/${id}`, { cancel_at_period_end: true });
      const { version, cancel_at_period_end } = await world.subscription(customer);
      const holder = await world.api.services.postgres.transaction();
      await holder('subscriptions')
        .where({ id })
        .update({ version: version + 1 });
      const changing = ask('PUT', `/subscriptions/${id}`, { version, ...change });
      await until('the change waits', isWaiting);
      await holder.commit();
      const { status, body, text } = await changing;
      expect([customer, status, body.code], text).to.deep.equal([customer, 409, 'version_conflict']);
      const after = await world.subscription(customer);
      expect([after.version, after.cancel_at_period_end]).to.deep.equal([version + 1, cancel_at_period_end]);
    }
  });
});
