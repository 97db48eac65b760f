/**
 * A line that follows another goes on in the periods that this one had: those of the subscription, wherever in them it began and
 * wherever they are anchored (docs/rules/proration.md, "Changes inside a period").
 */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scenario: lines that follow others', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Seats', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' })]);
    await world.plan('Desks', [fixed('62', { invoice_cadence: 'ADVANCE', display_name: 'desk' })]);
    await world.plan('Later', [fixed('31', { invoice_cadence: 'ARREAR', display_name: 'seat' })]);
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const lineOf = async (customer: string) => (await world.subscription(customer)).line_items.at(-1);
  const modify = async (customer: string, quantity: string) => {
    const { id } = (await lineOf(customer))!;
    const params = { line_items: [{ id, quantity }] };
    const body = { type: 'quantity_change', quantity_change_params: params };
    const preview = await world.post(path(customer, 'modify/preview'), body);
    const done = await world.post(path(customer, 'modify/execute'), body);
    const [said, made] = [preview, done].map(({ changed_resources }) => changed_resources.invoices[0]!.invoice);
    expect(said!.subtotal).to.equal(made!.subtotal);
    return made!.subtotal;
  };
  const lastOn = async (customer: string, day: string) => {
    await world.on(day);
    return (await world.statements(customer)).at(-1);
  };

  it('after a plan change inside the period', async () => {
    await world.on('2026-01-01', () => world.subscribe('changed', 'Seats'));
    await world.on('2026-01-11');
    const target_plan_id = world.id('plan Desks');
    await world.post(path('changed', 'change/v2/execute'), { target_plan_id, proration_behavior: 'create_prorations' });
    await world.on('2026-01-21');
    // 11 of 31 days: 22 back, and 44.
    expect(await modify('changed', '2')).to.equal('22');
    expect(await lastOn('changed', '2026-02-01')).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 124\n  desk 2026-02-01..2026-03-01: 2 = 124',
    );
  });

  it('where the periods are those of the calendar', async () => {
    await world.on('2026-01-05', () => world.subscribe('calendar', 'Seats', { billing_cycle: 'calendar' }));
    await world.on('2026-01-11');
    // 21 of 31 days.
    expect(await modify('calendar', '3')).to.equal('42');
    expect(await lastOn('calendar', '2026-02-01')).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-05..2026-02-01 = 93\n  seat 2026-02-01..2026-03-01: 3 = 93',
    );
  });

  it('where the anchor is another day than the start', async () => {
    const billing_anchor = '2026-01-16T00:00:00Z';
    await world.on('2026-01-01', () => world.subscribe('anchored', 'Seats', { billing_anchor }));
    await world.on('2026-01-11');
    expect(await modify('anchored', '3')).to.equal('10');
    expect(await lastOn('anchored', '2026-01-16')).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-01-16 = 93\n  seat 2026-01-16..2026-02-16: 3 = 93',
    );
  });

  it('where it is charged when the period is over, as usage is', async () => {
    await world.on('2026-01-05', async () => {
      await world.subscribe('arrears', 'Later', { billing_cycle: 'calendar' });
      await world.subscribe('usage', 'Calls', { billing_cycle: 'calendar' });
    });
    await world.use('usage', 'calls', 10, { at: '2026-01-06T00:00:00Z' });
    await world.on('2026-01-11');
    for (const [customer, amount] of [
      ['arrears', '62'],
      ['usage', '2'],
    ] as const) {
      const { id } = (await lineOf(customer))!;
      const { status, text } = await world.api.request('PUT', `/subscriptions/lineitems/${id}`, { body: { amount } });
      expect(status, text).to.equal(200);
    }
    await world.use('usage', 'calls', 10, { at: '2026-01-20T00:00:00Z' });
    await world.on('2026-02-01');
    expect((await world.statements('arrears')).at(-1)).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-05..2026-02-01 = 48\n' +
        '  seat 2026-01-05..2026-01-11: 1 = 6\n  seat 2026-01-11..2026-02-01: 1 = 42',
    );
    expect((await world.statements('usage')).at(-1)).to.equal(
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-05..2026-02-01 = 30\n' +
        '  calls 2026-01-05..2026-01-11: 10 = 10\n  calls 2026-01-11..2026-02-01: 10 = 20',
    );
  });
});
