/** Trials, drafts, what waits for its first payment, and starts that lie ahead. */
import { expect } from 'chai';
import { endUnpaid } from '../../actions/lifecycle/subscriptions/end-unpaid.ts';
import { dates, payNewest, startTrialsWorld } from '../support/trials.ts';
import { summarizeInvoice, type World } from '../support/world.ts';

describe('scenario: trials, drafts and openings', () => {
  let world: World;
  before(async () => {
    world = await startTrialsWorld();
  });
  after(() => world.stop());

  const events = async (customer: string) => {
    const { postgres } = world.api.services;
    const told = await postgres('system_events')
      .where({ entity_id: world.id(`subscription ${customer}`) })
      .orderBy('id')
      .select('event_name');
    return told.map(({ event_name }) => event_name);
  };
  const pay = (customer: string) => payNewest(world, customer);
  const activate = (customer: string, start_date: string) =>
    world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/activate`, { start_date });

  // The latest dates come first: what goes on is billed by every later date of another test.
  it('what is added before the start is charged with the opening', async () => {
    await world.on('2027-08-01', () =>
      world.subscribe('growing', 'Tried', { start_date: '2027-09-01T00:00:00Z', trial_period_days: 0 }),
    );
    const inline = { type: 'FIXED', price_unit_type: 'FIAT', billing_model: 'FLAT_FEE', billing_period: 'MONTHLY' };
    const price = { ...inline, invoice_cadence: 'ADVANCE', amount: '7', display_name: 'extra' };
    await world.post(`/subscriptions/${world.id('subscription growing')}/lineitems`, { price });
    expect(await world.statements('growing')).to.deep.equal([]);
    await world.on('2027-09-01');
    expect(await world.statements('growing')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2027-09-01..2027-10-01 = 37\n' +
        '  seat 2027-09-01..2027-10-01: 1 = 30\n  extra 2027-09-01..2027-10-01: 1 = 7',
    ]);
  });

  it('a start that lies ahead is invoiced when it comes', async () => {
    const start_date = '2027-06-10T00:00:00Z';
    await world.on('2027-06-01', () => world.subscribe('ahead', 'Pro', { start_date }));
    await world.subscribe('waiting', 'Pro', { start_date, payment_behavior: 'error_if_incomplete' });
    await world.subscribe('gone', 'Pro', { start_date });
    await world.cancel('gone');
    await world.subscribe('never', 'Pro', { start_date });
    await world.cancel('never', { cancellation_type: 'scheduled_date', cancel_at: '2027-06-05T00:00:00Z' });
    expect(dates(await world.subscription('ahead'))).to.deep.equal([
      'active',
      '2027-06-10T00:00:00.000Z',
      '2027-07-10T00:00:00.000Z',
      '2027-06-10T00:00:00.000Z',
    ]);
    const preview = await world.preview('ahead');
    await world.on('2027-06-09');
    for (const customer of ['ahead', 'waiting', 'gone', 'never'])
      expect(await world.statements(customer), customer).to.deep.equal([]);
    await world.on('2027-06-10');
    expect(await world.statements('ahead')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2027-06-10..2027-07-10 = 130\n' +
        '  seat 2027-06-10..2027-07-10: 1 = 30\n  setup 2027-06-10..2027-06-10: 1 = 100',
    ]);
    expect(summarizeInvoice(preview)).to.deep.equal(summarizeInvoice((await world.invoices('ahead'))[0]!));
    expect((await world.subscription('waiting')).subscription_status).to.equal('incomplete');
    for (const customer of ['gone', 'never']) {
      expect((await world.subscription(customer)).subscription_status, customer).to.equal('cancelled');
      expect(await world.statements(customer), customer).to.deep.equal([]);
    }
  });

  it('a draft is previewed, and activated with a trial that moves with its start', async () => {
    const terms = { trial_period_days: 14, subscription_status: 'draft', timezone: 'Europe/Berlin' };
    await world.on('2027-01-01', () => world.subscribe('draft', 'Tried', terms));
    expect(await world.subscription('draft')).to.include({ subscription_status: 'draft' });
    const preview = await world.preview('draft');
    expect(preview).to.include({ billing_reason: 'SUBSCRIPTION_TRIAL_END', subtotal: '30' });
    expect(await world.statements('draft')).to.deep.equal([]);
    const active = await activate('draft', '2027-03-20T12:00:00Z');
    expect(dates(active)).to.deep.equal([
      'trialing',
      '2027-03-20T12:00:00.000Z',
      '2027-04-03T11:00:00.000Z',
      '2027-04-03T11:00:00.000Z',
    ]);
    expect(active.trial_end).to.equal('2027-04-03T11:00:00Z');
    expect(await world.statements('draft'), 'its trial lies ahead').to.deep.equal([]);
    await world.on('2027-04-03T11:00:00Z');
    const [start, first] = await world.invoices('draft');
    expect(start!.billing_reason).to.equal('SUBSCRIPTION_TRIAL_START');
    expect(first!.subtotal).to.equal('30');
    expect(await events('draft')).to.deep.equal([
      'subscription.draft.created',
      'subscription.activated',
      'subscription.updated',
      'subscription.activated',
    ]);
  });

  it('what was never paid ends at its end, and is not invoiced any more', async () => {
    await world.on('2026-12-05', () =>
      world.subscribe('unpaid end', 'Pro', {
        payment_behavior: 'allow_incomplete',
        end_date: '2026-12-20T00:00:00Z',
      }),
    );
    expect((await world.subscription('unpaid end')).subscription_status).to.equal('incomplete');
    const run = () => endUnpaid(world.api.services, { now: world.now });
    await world.on('2026-12-19');
    expect(await run()).to.deep.equal({ ended: 0, failed: [] });
    await world.on('2026-12-21');
    const both = await Promise.all([run(), run()]);
    expect(both.map(({ ended }) => ended).sort()).to.deep.equal([0, 1]);
    expect(await world.subscription('unpaid end')).to.include({
      subscription_status: 'cancelled',
      cancelled_at: '2026-12-20T00:00:00Z',
    });
    expect(await world.statements('unpaid end')).to.have.length(1);
    expect((await events('unpaid end')).at(-1)).to.equal('subscription.cancelled');
  });

  it('what the end of a trial charges has to be paid first, where the payment behaviour says so', async () => {
    const terms = { trial_period_days: 7, payment_behavior: 'allow_incomplete' };
    await world.on('2026-10-01', () => world.subscribe('unpaid', 'Tried', terms));
    await world.subscribe('costless', 'Free', terms);
    await world.subscribe('refusing', 'Tried', { ...terms, payment_behavior: 'error_if_incomplete' });
    await world.on('2026-10-08');
    const states = async () =>
      Promise.all(
        ['unpaid', 'costless', 'refusing'].map(async (one) => (await world.subscription(one)).subscription_status),
      );
    expect(await states()).to.deep.equal(['incomplete', 'active', 'incomplete']);
    await world.on('2026-12-01');
    expect(await world.statements('unpaid'), 'no further period while it waits').to.have.length(2);
    await pay('unpaid');
    expect(await states()).to.deep.equal(['active', 'active', 'incomplete']);
    await world.on('2026-12-02');
    expect(await world.statements('unpaid')).to.have.length(3);
    expect((await events('unpaid')).slice(0, 3)).to.deep.equal([
      'subscription.created',
      'subscription.updated',
      'subscription.activated',
    ]);
  });

  it('children follow the trial of their parent: they are in it, leave it with the parent, and cost nothing in it', async () => {
    await world.on('2026-09-10', () => world.customer('trial child'));
    const inheritance = { external_customer_ids_to_inherit_subscription: ['trial child'] };
    await world.subscribe('trial parent', 'Tried', { inheritance });
    const childOf = async () => {
      const found = { parent_subscription_ids: [world.id('subscription trial parent')] };
      const { subscription_status, current_period_end } = (await world.post('/subscriptions/search', found)).items[0]!;
      return [subscription_status, new Date(current_period_end).toISOString().slice(0, 10)];
    };
    expect(await childOf()).to.deep.equal(['trialing', '2026-09-24']);
    await world.use('trial child', 'calls', 300);
    await world.on('2026-09-24', () => world.use('trial child', 'calls', 100));
    expect(await childOf()).to.deep.equal(['active', '2026-10-24']);
    await world.on('2026-10-24');
    expect(await world.statements('trial parent')).to.deep.equal([
      'SUBSCRIPTION_TRIAL_START FINALIZED 2026-09-10..2026-09-24 = 0',
      'SUBSCRIPTION_TRIAL_END FINALIZED 2026-09-24..2026-10-24 = 30\n  seat 2026-09-24..2026-10-24: 1 = 30',
      'SUBSCRIPTION_CYCLE DRAFT 2026-09-24..2026-10-24 = 31\n' +
        '  seat 2026-10-24..2026-11-24: 1 = 30\n  calls 2026-09-24..2026-10-24: 100 = 1',
    ]);
  });

  it('cancelled when the trial is over and the scheduler was away: the paid period began before', async () => {
    await world.on('2026-08-21', () => world.subscribe('late', 'Pro', { trial_period_days: 10 }));
    world.at('2026-09-05');
    await world.cancel('late');
    expect((await world.statements('late'))[1]).to.contain('SUBSCRIPTION_TRIAL_END FINALIZED 2026-08-31..2026-09-30');
  });

  it('a trial that is cancelled, also backdated, or whose end comes, is never invoiced again', async () => {
    const trial = { trial_period_days: 10 };
    const immediate = { cancellation_type: 'immediate', cancel_at: '2026-08-03T00:00:00Z' };
    await world.on('2026-08-01', () => world.subscribe('quitter', 'Pro', trial));
    await world.subscribe('leaving', 'Pro', trial);
    await world.cancel('leaving', { cancellation_type: 'end_of_period' });
    await world.subscribe('ending', 'Pro', { ...trial, end_date: '2026-08-06T00:00:00Z' });
    await world.on('2026-08-05', () => world.cancel('quitter', immediate));
    await world.on('2026-08-20');
    for (const customer of ['quitter', 'leaving', 'ending']) {
      expect(await world.statements(customer), customer).to.have.length(1);
      expect((await world.subscription(customer)).subscription_status, customer).to.equal('cancelled');
      expect((await events(customer)).at(-1)).to.equal('subscription.cancelled');
    }
    expect((await world.subscription('quitter')).cancel_at).to.contain('2026-08-03');
  });

  it("the plan's days count where the request states none, and 0 is none", async () => {
    await world.on('2026-06-01', () => world.subscribe('uniform', 'Tried'));
    expect((await world.subscription('uniform')).trial_end).to.contain('2026-06-15');
    await world.subscribe('untried', 'Tried', { trial_period_days: 0 });
    expect(await world.subscription('untried')).to.include({ subscription_status: 'active', trial_end: null });
  });

  const anchors = [
    ['calendar billing stays with the calendar', { billing_cycle: 'calendar' }, '2026-07-01', '21'],
    ['an anchor that is stated stays', { billing_anchor: '2026-06-05T00:00:00Z' }, '2026-07-05', '25'],
    ['else periods are anchored at the end of the trial', {}, '2026-07-10', '30'],
  ] as const;
  for (const [name, fields, end, total] of anchors) {
    it(name, async () => {
      const customer = `anchor ${end}`;
      const trial = { trial_start: '2026-06-01T00:00:00Z', trial_end: '2026-06-10T00:00:00Z' };
      const start_date = '2026-06-01T00:00:00Z';
      await world.subscribe(customer, 'Tried', { ...trial, start_date, ...fields });
      await world.on(`2026-06-10T00:00:0${anchors.findIndex(([which]) => which === name)}Z`);
      const [, first] = await world.statements(customer);
      const seat = `  seat 2026-06-10..${end}: 1 = ${total}`;
      expect(first).to.equal(`SUBSCRIPTION_TRIAL_END FINALIZED 2026-06-10..${end} = ${total}\n${seat}`);
    });
  }

  it('14 days over a clock change; nothing used in them is billed, and what is charged begins at their end', async () => {
    const terms = { trial_period_days: 14, timezone: 'Europe/Berlin' };
    await world.on('2026-03-20T12:00:00Z', () => world.subscribe('berlin', 'Pro', terms));
    // Summer time begins on 29 March: 13:00 in Berlin is 11:00 UTC then.
    expect(dates(await world.subscription('berlin'))).to.deep.equal([
      'trialing',
      '2026-03-20T12:00:00.000Z',
      '2026-04-03T11:00:00.000Z',
      '2026-04-03T11:00:00.000Z',
    ]);
    await world.on('2026-03-25', () => world.use('berlin', 'calls', 500));
    const preview = await world.preview('berlin');
    await world.on('2026-04-03T11:00:00Z');
    await world.on('2026-04-10', () => world.use('berlin', 'calls', 200));
    await world.on('2026-05-03T11:00:00Z');
    expect(await world.statements('berlin')).to.deep.equal([
      'SUBSCRIPTION_TRIAL_START FINALIZED 2026-03-20T12:00..2026-04-03T11:00 = 0',
      'SUBSCRIPTION_TRIAL_END FINALIZED 2026-04-03T11:00..2026-05-03T11:00 = 130\n' +
        '  seat 2026-04-03T11:00..2026-05-03T11:00: 1 = 30\n  setup 2026-04-03T11:00..2026-04-03T11:00: 1 = 100',
      'SUBSCRIPTION_CYCLE DRAFT 2026-04-03T11:00..2026-05-03T11:00 = 32\n' +
        '  seat 2026-05-03T11:00..2026-06-03T11:00: 1 = 30\n  calls 2026-04-03T11:00..2026-05-03T11:00: 200 = 2',
    ]);
    const [start, first] = await world.invoices('berlin');
    expect(start!.payment_status).to.equal('SUCCEEDED');
    expect(summarizeInvoice(preview)).to.deep.equal(summarizeInvoice(first!));
    expect(await events('berlin')).to.deep.equal([
      'subscription.created',
      'subscription.activated',
      'subscription.updated',
    ]);
  });
});
