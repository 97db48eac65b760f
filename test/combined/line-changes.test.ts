/** Lines that come, change and go while a subscription runs, and what its invoices read then. */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

describe('scenario: lines that come and go', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Base', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' })]);
    await world.plan('Calls', [usage('calls', '0.01', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  const price = (amount: string, fields: Fields = {}) => ({
    ...fixed(amount, { invoice_cadence: 'ADVANCE', billing_period: 'MONTHLY', price_unit_type: 'FIAT', ...fields }),
  });
  const add = (customer: string, fields: Fields) =>
    world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/lineitems`, fields);
  const change = async <Method extends string>(method: Method, id: string, body: Fields) => {
    const answer = await world.api.request(method, `/subscriptions/lineitems/${id}`, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };
  const line = async (customer: string, name: string) => {
    const { line_items } = await world.subscription(customer);
    return line_items.find(({ display_name }) => display_name === name);
  };

  it('a set-up fee is invoiced once, when it is added', async () => {
    await world.on('2026-01-01', () => world.subscribe('setup', 'Base'));
    await world.on('2026-01-11', () =>
      add('setup', { price: price('250', { billing_period: 'ONETIME', display_name: 'set-up' }), quantity: '2' }),
    );
    await world.on('2026-03-01');
    expect(await world.statements('setup')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 31\n  base 2026-01-01..2026-02-01: 1 = 31',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2026-01-11 = 500\n  set-up 2026-01-11..2026-01-11: 2 = 500',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 31\n  base 2026-02-01..2026-03-01: 1 = 31',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 31\n  base 2026-03-01..2026-04-01: 1 = 31',
    ]);
  });

  it('a yearly line on a monthly subscription has years of its own, also when its price changes in one', async () => {
    await world.on('2026-01-01', () => world.subscribe('year', 'Base'));
    await world.on('2026-01-11', () =>
      add('year', { price: price('365', { billing_period: 'ANNUAL', display_name: 'support' }) }),
    );
    const { id } = (await line('year', 'support'))!;
    // 73 of 365 days later: four fifths of the year are left.
    await world.on('2026-03-25', () => change('PUT', id, { amount: '730' }));
    await world.on('2027-02-01');
    const said = await world.statements('year');
    expect(said.filter((one) => one.includes('support'))).to.deep.equal([
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2027-01-11 = 365\n  support 2026-01-11..2027-01-11: 1 = 365',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-03-25..2027-01-11 = 292\n' +
        '  support (unused time) 2026-03-25..2027-01-11: 1 = -292\n  support 2026-03-25..2027-01-11: 1 = 584',
      'SUBSCRIPTION_CYCLE DRAFT 2026-12-01..2027-01-01 = 761\n' +
        '  base 2027-01-01..2027-02-01: 1 = 31\n  support 2027-01-11..2028-01-11: 1 = 730',
    ]);
  });

  it('a line that is added and ended inside a period costs what it served', async () => {
    await world.on('2026-01-01', () => world.subscribe('guest', 'Base'));
    await world.on('2026-01-11', () => add('guest', { price: price('62', { display_name: 'seat' }) }));
    const { id } = (await line('guest', 'seat'))!;
    await world.on('2026-01-21', () => change('DELETE', id, {}));
    await world.on('2026-02-01');
    expect(await world.statements('guest')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 31\n  base 2026-01-01..2026-02-01: 1 = 31',
      'SUBSCRIPTION_UPDATE FINALIZED 2026-01-11..2026-02-01 = 42\n  seat 2026-01-11..2026-02-01: 1 = 42',
      'SUBSCRIPTION_UPDATE SKIPPED 2026-01-21..2026-02-01 = 0\n  seat (unused time) 2026-01-21..2026-02-01: 1 = -22',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 31\n  base 2026-02-01..2026-03-01: 1 = 31',
    ]);
  });

  it('without proration a line is charged from the next period on, and what ends is not given back', async () => {
    const proration_behavior = 'none';
    await world.on('2026-01-01', () => world.subscribe('whole', 'Base'));
    const base = await line('whole', 'base');
    await world.on(
      '2026-01-11',
      () => add('whole', { price: price('62', { display_name: 'seat' }), proration_behavior }),
      () => change('PUT', base!.id, { amount: '40', proration_behavior }),
    );
    await world.on('2026-02-01');
    const seat = await line('whole', 'seat');
    await world.on(
      '2026-02-11',
      () => world.finalize(),
      () => change('DELETE', seat!.id, { proration_behavior }),
    );
    await world.on('2026-03-01');
    expect(await world.statements('whole')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 31\n  base 2026-01-01..2026-02-01: 1 = 31',
      'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 102\n' +
        '  seat 2026-02-01..2026-03-01: 1 = 62\n  base 2026-02-01..2026-03-01: 1 = 40',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 40\n  base 2026-03-01..2026-04-01: 1 = 40',
    ]);
  });

  it('usage costs what its line says when it happens', async () => {
    await world.on('2026-01-01', () => world.subscribe('usage', 'Calls'));
    await world.on('2026-01-05', () => world.use('usage', 'calls', 100));
    const before = await line('usage', 'calls');
    await world.on('2026-01-11');
    const after = await change('PUT', before!.id, { amount: '0.02' });
    expect(after.price).to.include({ parent_price_id: before!.price_id, entity_type: 'SUBSCRIPTION' });
    await world.on('2026-01-20', () => world.use('usage', 'calls', 100));
    await world.on('2026-01-25', () => change('DELETE', after.id, {}));
    await world.on('2026-01-28', () => world.use('usage', 'calls', 100));
    await world.on('2026-02-01');
    expect(await world.statements('usage')).to.deep.equal([
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 3\n' +
        '  calls 2026-01-01..2026-01-11: 100 = 1\n  calls 2026-01-11..2026-01-25: 100 = 2',
    ]);
  });

  it('a change of a line and the billing of its period come one after the other, whichever is first', async () => {
    await world.on('2026-01-01', () => world.subscribe('raced', 'Base'));
    const { id } = (await line('raced', 'base'))!;
    world.at('2026-02-01');
    await Promise.all([world.bill(), change('PUT', id, { amount: '40' }), world.bill()]);
    await world.on('2026-03-01');
    expect(await world.statements('raced')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 31\n  base 2026-01-01..2026-02-01: 1 = 31',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 40\n  base 2026-02-01..2026-03-01: 1 = 40',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 40\n  base 2026-03-01..2026-04-01: 1 = 40',
    ]);
  });
});
