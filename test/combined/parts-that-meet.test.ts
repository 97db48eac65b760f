/** Rules of different parts about the same line, period or invoice: each by itself is tested where it stands. */
import { expect } from 'chai';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import type { Modification } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scenario: parts that meet', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    const meter = await world.meter('calls');
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
    await world.plan('Seats', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' })]);
    await world.plan('Yearly', [
      fixed('365', { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL', display_name: 'licence' }),
    ]);
    await world.plan('Yearly usage', [usage('calls', '1', { billing_period: 'ANNUAL', display_name: 'calls' })]);
    await world.plan('Small', [usage('calls', '1', { display_name: 'calls' })]);
    await world.plan('Large', [usage('calls', '1', { display_name: 'calls' })]);
    const feature = await world.post('/features', { name: 'Calls', type: 'metered', meter_id: meter.id });
    for (const [plan, usage_limit] of Object.entries({ Small: 100, Large: 1000 }))
      await world.post('/entitlements', {
        entity_type: 'PLAN',
        entity_id: world.id(`plan ${plan}`),
        feature_id: feature.id,
        feature_type: 'metered',
        usage_limit,
      });
  });
  after(() => world.stop());

  const ONCE = { invoice_cadence: 'ADVANCE', billing_period: 'ONETIME' } as const;
  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const linesOf = async (customer: string) => (await world.subscription(customer)).line_items;
  const heads = async (customer: string) => (await world.statements(customer)).map((text) => text.split('\n')[0]);
  const toPlan = (plan: string, fields: object = {}) => ({
    target_plan_id: world.id(`plan ${plan}`),
    proration_behavior: 'create_prorations',
    billing_cadence: 'RECURRING',
    billing_period: 'MONTHLY',
    billing_cycle: 'anniversary',
    ...fields,
  });
  const inline = (amount: string, fields: object) => ({
    price: {
      type: 'FIXED',
      price_unit_type: 'FIAT',
      billing_model: 'FLAT_FEE',
      billing_period: 'MONTHLY',
      invoice_cadence: 'ADVANCE',
      amount,
      ...fields,
    },
  });

  // First: it would bill what goes on of the others for months.
  it('a period that another one cuts is charged by its own length', async () => {
    await world.on('2026-01-10', () =>
      world.subscribe('grid', 'Yearly usage', { line_items: [inline('100', { invoice_cadence: 'ARREAR' })] }),
    );
    await world.use('grid', 'calls', 8, { at: '2026-02-01T00:00:00Z' });
    await world.on('2026-05-01');
    await world.post(
      path('grid', 'change/execute'),
      toPlan('Seats', { billing_cycle: 'calendar', change_at: 'end_of_period' }),
    );
    await world.on('2026-05-10');
    await world.finalize();
    const [closed] = (await world.statements('grid')).slice(-1);
    expect(closed).to.contain('2026-04-10..2026-05-10: 1 = 100').and.to.contain('2026-01-10..2026-05-10: 8 = 8');
  });

  it('a threshold counts usage of a line that has ended up to its end', async () => {
    await world.on('2026-01-01', () => world.subscribe('changed', 'Calls', { auto_invoice_threshold: '50' }));
    await world.use('changed', 'calls', 40, { at: '2026-01-05T00:00:00Z' });
    await world.on('2026-01-10');
    const [line] = await linesOf('changed');
    const raised = await world.api.request('PUT', `/subscriptions/lineitems/${line!.id}`, { body: { amount: '2' } });
    expect(raised.status, raised.text).to.equal(200);
    await world.use('changed', 'calls', 50, { at: '2026-01-15T00:00:00Z' });
    world.at('2026-01-20');
    await world.waitForPipeline();
    await billThresholds(world.api.services, world.now);
    expect(await world.statements('changed')).to.deep.equal([
      'THRESHOLD_BILLING FINALIZED 2026-01-01..2026-01-20 = 140\n' +
        '  calls 2026-01-01..2026-01-10: 40 = 40\n  calls 2026-01-10..2026-01-20: 50 = 100',
    ]);
  });

  it('a period that begins anew charges no set-up a second time', async () => {
    await world.on('2026-01-01', () => world.subscribe('restarted', 'Seats', { line_items: [inline('250', ONCE)] }));
    await world.on('2026-01-11');
    const changed = await world.post(
      path('restarted', 'change/execute'),
      toPlan('Yearly', { billing_period: 'ANNUAL' }),
    );
    expect(changed.invoice!.total).to.equal('344');
  });

  it('a set-up that was taken off in the trial is not charged behind it', async () => {
    await world.on('2026-01-01', () =>
      world.subscribe('tried', 'Seats', {
        trial_period_days: 14,
        line_items: [inline('250', ONCE)],
      }),
    );
    await world.on('2026-01-05');
    const once = (await linesOf('tried')).find(({ billing_period }) => billing_period === 'ONETIME');
    const ended = await world.api.request('DELETE', `/subscriptions/lineitems/${once!.id}`, { body: {} });
    expect(ended.status, ended.text).to.equal(200);
    await world.on('2026-01-16');
    expect((await heads('tried')).at(-1)).to.equal('SUBSCRIPTION_TRIAL_END FINALIZED 2026-01-15..2026-02-15 = 31');
  });

  it('a period has the free units of the plan that it had', async () => {
    await world.on('2026-01-01', () => world.subscribe('upgraded', 'Small'));
    await world.use('upgraded', 'calls', 500, { at: '2026-01-20T00:00:00Z' });
    await world.on('2026-01-25');
    await world.post(path('upgraded', 'change/execute'), toPlan('Large', { change_at: 'end_of_period' }));
    await world.on('2026-02-01');
    expect((await heads('upgraded')).at(-1)).to.equal('SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 400');
  });

  it('a cancellation gives back a line that was to begin later, and what it was for is not voided then', async () => {
    await world.on('2026-01-01', () => world.subscribe('early', 'Seats'));
    await world.on('2026-01-10');
    await world.post(path('early', 'lineitems'), { ...inline('31', {}), start_date: '2026-01-20T00:00:00Z' });
    await world.pay('early');
    await world.on('2026-01-16');
    const cancelled = await world.cancel('early', {
      cancellation_type: 'immediate',
      proration_behavior: 'create_prorations',
    });
    expect(cancelled.total_credit_amount).to.equal('28');
    const opening = (await world.invoices('early'))[0]!;
    const voided = await world.api.request('POST', `/invoices/${opening.id}/void`, { body: {} });
    expect(voided.status, voided.text).to.equal(400);
  });

  it('a cancellation without an invoice forgives the running period, and none that was over', async () => {
    await world.on('2026-01-01', () => world.subscribe('skipped', 'Calls'));
    await world.use('skipped', 'calls', 7, { at: '2026-01-20T00:00:00Z' });
    await world.waitForPipeline();
    world.at('2026-02-02');
    await world.cancel('skipped', { cancellation_type: 'immediate', cancel_immediately_inovice_policy: 'skip' });
    expect(await heads('skipped')).to.deep.equal(['SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 7']);
  });

  it('a cancellation, and its undoing, reach a draft that rests', async () => {
    await world.on('2026-01-01', () => world.subscribe('resting', 'Seats'));
    await world.on('2026-02-01');
    await world.cancel('resting', { cancellation_type: 'scheduled_date', cancel_at: '2026-02-15T00:00:00Z' });
    expect((await heads('resting')).at(-1)).to.equal('SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 15.5');
    const { schedules } = await world.get(path('resting', 'schedules'));
    await world.post(`/subscriptions/schedules/${schedules[0]!.id}/cancel`, {});
    expect((await heads('resting')).at(-1)).to.equal('SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 31');
  });

  it('what is given back of one that is invoiced with a parent goes to who paid', async () => {
    await world.on('2026-01-01', () => world.subscribe('child', 'Seats', { start_date: '2026-01-01T00:00:00Z' }));
    await world.subscribe('payer', 'Seats', {
      inheritance: { subscriptions_ids_for_grouped_invoicing: [world.id('subscription child')] },
    });
    await world.on('2026-02-01');
    await world.finalize();
    await world.pay('payer');
    await world.on('2026-02-15');
    await world.cancel('child', { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
    const wallets = async (customer: string) =>
      (await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`)).map(({ balance }) => balance);
    expect([await wallets('child'), await wallets('payer')]).to.deep.equal([[], ['15.5']]);
  });

  it('and of what it was billed for itself before, to it, though a line of now is the payer’s', async () => {
    await world.on('2026-01-01', () => world.subscribe('joined', 'Seats'));
    await world.pay('joined');
    await world.subscribe('head', 'Seats');
    await world.on('2026-01-11');
    const join = { action: 'add', child_subscription_ids: [world.id('subscription joined')] };
    const group = { type: 'grouped_invoicing', grouped_invoicing_params: join };
    const joined = await world.api.request('POST', path('head', 'modify/execute'), { body: group });
    expect(joined.status, joined.text).to.equal(200);
    const { id } = (await linesOf('joined'))[0]!;
    const params = { line_items: [{ id, quantity: '2' }] };
    const change = { type: 'quantity_change', quantity_change_params: params };
    const said = await world.post(path('joined', 'modify/preview'), change);
    const done = await world.post(path('joined', 'modify/execute'), change);
    const invoiced = ({ changed_resources }: Modification) =>
      changed_resources.invoices.map(({ invoice }) => [invoice!.customer_id, invoice!.subtotal]);
    const [head, own] = [world.id('customer head'), world.id('customer joined')];
    // 21 of 31 days: 42 for both seats to who pays now, 21 for the one seat back to who paid for it.
    expect(invoiced(done)).to.deep.equal([
      [head, '42'],
      [own, '-21'],
    ]);
    expect(invoiced(said)).to.deep.equal(invoiced(done));
    expect((await world.get(`/customers/${own}/wallets`)).map(({ balance }) => balance)).to.deep.equal(['21']);
  });
});
