/** What the clock has listed, and somebody has changed before it is held: whoever acts on it looks again at what it was listed by. */
import { expect } from 'chai';
import { finalizeDueInvoices } from '../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { cancelOverdue } from '../../actions/lifecycle/payments/end-overdue.ts';
import { resumePayment } from '../../actions/lifecycle/payments/process-payment.ts';
import { listDuePayments } from '../../storage/queue/due-payments.ts';
import type { Invoice } from '../support/answers.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

describe('scenario: looked at again', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.plan('Advance', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    await world.plan('Arrear', [fixed('10')]);
    await put('/settings/payment_config', { value: { default_gateway: 'sandbox', retry_after_days: [3, 5, 7] } });
    await put('/settings/subscription_config', { value: { auto_cancellation_enabled: true, grace_period_days: 3 } });
  });
  after(() => world.stop());

  async function put(path: string, body: object): Promise<void> {
    const answer = await world.api.request('PUT', path, { body });
    expect(answer.status, answer.text).to.equal(200);
  }

  /** Does the deed while the job, and who came before it, wait for the subscription. */
  async function whileHeld(customer: string, waiting: (() => Promise<unknown>)[], deed?: () => Promise<unknown>) {
    const { postgres } = world.api.services;
    const holder = await postgres.transaction();
    await holder('subscriptions')
      .where({ id: world.id(`subscription ${customer}`) })
      .forUpdate();
    const those: Promise<unknown>[] = [];
    try {
      for (const one of waiting) {
        those.push(one());
        await until('it waits', async () => {
          const rows = await postgres('pg_stat_activity')
            .where({ wait_event_type: 'Lock' })
            .whereRaw('datname = current_database()');
          return rows.length === those.length;
        });
      }
      await deed?.();
    } finally {
      await holder.rollback();
    }
    return Promise.all(those);
  }

  it('a subscription goes on whose due date was put off while the job waited, and ends where it was not', async () => {
    const months: [string, string][] = [
      ['put off', '2026-01'],
      ['left', '2026-02'],
    ];
    for (const [customer, month] of months) {
      world.at(`${month}-01T00:00:00Z`);
      await world.subscribe(customer, 'Advance', { collection_method: 'send_invoice' });
      const [invoice] = await world.invoices(customer);
      await put(`/invoices/${invoice!.id}`, { due_date: `${month}-03T00:00:00Z` });
      world.at(`${month}-20T00:00:00Z`);
      const isEnded = customer === 'left';
      const putOff = () => put(`/invoices/${invoice!.id}`, { due_date: '2027-01-01T00:00:00Z' });
      const end = () => cancelOverdue(world.api.services, { now: world.now });
      const [report] = await whileHeld(customer, [end], isEnded ? undefined : putOff);
      const { subscription_status } = await world.subscription(customer);
      expect(report).to.deep.equal({ ended: isEnded ? 1 : 0, failed: [] });
      expect(subscription_status).to.equal(isEnded ? 'cancelled' : 'active');
    }
    await world.cancel('put off');
    await world.finalize();
  });

  it('a draft rests from its last change, also where that came while the job waited', async () => {
    world.at('2026-03-01T00:00:00Z');
    await world.subscribe('edited', 'Arrear');
    await world.on('2026-04-01');
    const [draft] = await world.invoices('edited');
    expect(draft!.invoice_status).to.equal('DRAFT');
    world.at('2026-04-01T02:00:01Z');
    const { subscription_line_item_id, period_start, period_end } = draft!.line_items[0]!;
    const line_items = [{ subscription_line_item_id, period_start, period_end, amount: '4', quantity: '1' }];
    const finalize = () => finalizeDueInvoices(world.api.services, { now: world.now, delay_seconds: 7200 });
    const edit = () => world.api.request('POST', `/invoices/${draft!.id}/compute?sync=true`, { body: { line_items } });
    const [edited, report] = (await whileHeld('edited', [edit, finalize])) as [
      Awaited<ReturnType<typeof edit>>,
      unknown,
    ];
    expect([edited.status, (edited.body as { invoice?: Invoice }).invoice?.total], edited.text).to.deep.equal([
      200,
      '4',
    ]);
    expect(report).to.deep.equal({ finalized: 0, skipped: 0, waiting: [], without_seller: [], failed: [] });
    expect((await world.get(`/invoices/${draft!.id}`)).invoice_status).to.equal('DRAFT');
    world.at('2026-04-01T04:00:01Z');
    expect((await finalize()).finalized).to.equal(1);
    expect((await world.get(`/invoices/${draft!.id}`)).total).to.equal('4');
  });

  it('a payment has its next try when that is due, and not because an old list names it', async () => {
    world.at('2026-05-01T00:00:00Z');
    await world.customer('declined');
    await world.post(`/payments/customers/${world.id('customer declined')}/methods`, {
      gateway_payment_method_id: 'pm_sandbox_declined',
    });
    await world.subscribe('declined', 'Advance');
    world.at('2026-05-04T00:00:01Z');
    const { services, scope } = world.api;
    const listed = await listDuePayments(services.postgres, { now: world.now, left: [], only: scope });
    await processDuePayments(services, { now: world.now });
    const seen = async () => {
      const { payment_status, attempt_count, next_attempt_at } = await world.get(`/payments/${listed[0]!.id}`);
      return [payment_status, attempt_count, next_attempt_at];
    };
    expect(listed.length).to.equal(1);
    expect(await seen()).to.deep.equal(['PENDING', 2, '2026-05-09T00:00:01Z']);
    for (const { id } of listed) await resumePayment(services, scope, { id, by: { now: world.now } });
    expect(await seen()).to.deep.equal(['PENDING', 2, '2026-05-09T00:00:01Z']);
  });
});
