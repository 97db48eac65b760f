/**
 * What a meter that never resets has counted stands in every period, and is paid for once in each: whoever changes the plan or the price
 * between periods of different lengths pays for no time twice, and for none not at all (docs/rules/subscriptions.md, "Plan changes", "Lines
 * that come and go").
 */
import { expect } from 'chai';
import { startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;
const QUARTERLY = { billing_period: 'QUARTERLY' };
const MONTHLY = { billing_period: 'MONTHLY' };

describe('scenario: what stands, changed between periods of different lengths', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('desks', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    const named = (name: string, amount: string, fields: Fields) =>
      usage('seats', amount, { display_name: name, ...fields });
    await world.plan('Quarters', [named('q', '3', QUARTERLY)]);
    await world.plan('Months', [named('m', '1', MONTHLY)]);
    await world.plan('Other months', [named('o', '2', MONTHLY)]);
    await world.plan('Both', [named('q', '3', QUARTERLY), named('m', '1', MONTHLY)]);
    await world.plan('With months later', [
      named('q', '3', QUARTERLY),
      named('late', '1', { ...MONTHLY, start_date: '2026-02-01T00:00:00Z' }),
    ]);
    await world.plan('Months and desks', [named('m', '1', MONTHLY), usage('desks', '7', { display_name: 'desk' })]);
  });
  after(() => world.stop());

  const subscribed = async (customer: string, plan: string) => {
    await world.on('2026-01-01', () => world.subscribe(customer, plan));
    await world.send([world.event(customer, 'seats', { n: 5, at: '2026-01-02T00:00:00Z' })]);
  };
  const changed = (customer: string, plan: string, fields: Fields = {}) =>
    world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/change/v2/execute`, {
      target_plan_id: world.id(`plan ${plan}`),
      proration_behavior: 'create_prorations',
      ...fields,
    });
  /** The lines of all invoices of the half-year, in their order. */
  const paid = async (customer: string) => {
    await world.on('2026-07-02');
    const said = await world.statements(customer);
    return said
      .flatMap((one) =>
        one
          .split('\n')
          .slice(1)
          .map((line) => line.trim()),
      )
      .sort();
  };

  const CHANGES: [title: string, from: string, to: string, lines: string[]][] = [
    [
      'by the quarter, then by the month: with the end of the quarter',
      'Quarters',
      'Months',
      [
        'm 2026-04-01..2026-05-01: 5 = 5',
        'm 2026-05-01..2026-06-01: 5 = 5',
        'm 2026-06-01..2026-07-01: 5 = 5',
        'q 2026-01-01..2026-04-01: 5 = 15',
      ],
    ],
    [
      'by the month, then by the quarter: with the end of the month',
      'Months',
      'Quarters',
      ['m 2026-01-01..2026-02-01: 5 = 5', 'q 2026-02-01..2026-05-01: 5 = 15'],
    ],
    [
      'by the month before and after',
      'Months',
      'Other months',
      [
        'm 2026-01-01..2026-02-01: 5 = 5',
        ...['02', '03', '04', '05', '06'].map((month, at) => `o 2026-${month}-01..2026-0${at + 3}-01: 5 = 10`),
      ],
    ],
    [
      'by both, then by the month: with the one that ends last',
      'Both',
      'Other months',
      [
        'm 2026-01-01..2026-02-01: 5 = 5',
        'm 2026-02-01..2026-03-01: 5 = 5',
        'm 2026-03-01..2026-04-01: 5 = 5',
        ...['04', '05', '06'].map((month, at) => `o 2026-${month}-01..2026-0${at + 5}-01: 5 = 10`),
        'q 2026-01-01..2026-04-01: 5 = 15',
      ],
    ],
    [
      'another meter does not wait for it',
      'Quarters',
      'Months and desks',
      [
        ...['02', '03', '04', '05', '06'].map((month, at) => `desk 2026-${month}-01..2026-0${at + 3}-01: 4 = 28`),
        'm 2026-04-01..2026-05-01: 5 = 5',
        'm 2026-05-01..2026-06-01: 5 = 5',
        'm 2026-06-01..2026-07-01: 5 = 5',
        'q 2026-01-01..2026-04-01: 5 = 15',
      ],
    ],
  ];
  for (const [title, from, to, lines] of CHANGES)
    it(title, async () => {
      const customer = `${from} to ${to}`;
      await subscribed(customer, from);
      await world.send([world.event(customer, 'desks', { n: 4, at: '2026-01-03T00:00:00Z' })]);
      await world.on('2026-01-15', () => changed(customer, to));
      expect(await paid(customer)).to.deep.equal(lines);
    });

  const OTHER_FROM_APRIL = ['04', '05', '06'].map((month, at) => `o 2026-${month}-01..2026-0${at + 5}-01: 5 = 10`);
  const OTHER_FROM_FEBRUARY = ['02', '03', '04', '05', '06'].map(
    (month, at) => `o 2026-${month}-01..2026-0${at + 3}-01: 5 = 10`,
  );

  it('changed twice while the quarter of the first plan stands: the third begins behind it, and the second never does', async () => {
    await subscribed('twice', 'Quarters');
    await world.on('2026-01-15', () => changed('twice', 'Months'));
    await world.on('2026-01-20', () => changed('twice', 'Quarters'));
    expect(await paid('twice')).to.deep.equal(['q 2026-01-01..2026-04-01: 5 = 15', 'q 2026-04-01..2026-07-01: 5 = 15']);
  });

  it('changed at the end of a period, and again without proration', async () => {
    await subscribed('at the end', 'Quarters');
    await world.on('2026-01-15', () => changed('at the end', 'Months', { change_at: 'end_of_period' }));
    await world.on('2026-02-10', () => changed('at the end', 'Other months', { proration_behavior: 'none' }));
    expect(await paid('at the end')).to.deep.equal([...OTHER_FROM_APRIL, 'q 2026-01-01..2026-04-01: 5 = 15']);
  });

  it('a line that has not begun never does', async () => {
    await subscribed('not begun', 'With months later');
    await world.on('2026-01-15', () => changed('not begun', 'Other months'));
    expect(await paid('not begun')).to.deep.equal([...OTHER_FROM_APRIL, 'q 2026-01-01..2026-04-01: 5 = 15']);
  });

  it('a line that ends inside its period has paid for all of it', async () => {
    await subscribed('ended', 'Months');
    const { id } = (await world.subscription('ended')).line_items[0]!;
    const body = { effective_from: '2026-01-20T00:00:00Z' };
    await world.on('2026-01-10', () => world.api.request('DELETE', `/subscriptions/lineitems/${id}`, { body }));
    await world.on('2026-01-15', () => changed('ended', 'Other months'));
    expect(await paid('ended')).to.deep.equal(['m 2026-01-01..2026-01-20: 5 = 5', ...OTHER_FROM_FEBRUARY]);
  });

  it('what an add-on charges besides ends with its own period, and the plan does not wait for it', async () => {
    const { id: addon_id } = await world.post('/addons', { name: 'Seats', lookup_key: 'more-seats', type: 'onetime' });
    await world.post('/prices', {
      entity_type: 'ADDON',
      entity_id: addon_id,
      meter_id: world.id('meter seats'),
      type: 'USAGE',
      billing_model: 'FLAT_FEE',
      amount: '3',
      currency: 'usd',
      ...QUARTERLY,
      invoice_cadence: 'ARREAR',
      display_name: 'addon',
      start_date: '2020-01-01T00:00:00Z',
    });
    await subscribed('addon', 'Months');
    const subscription_id = world.id('subscription addon');
    await world.on('2026-01-11', () => world.post('/subscriptions/addon', { subscription_id, addon_id }));
    const entity_policies = { addons: { default_behaviour: 'drop' } };
    await world.on('2026-01-15', () => changed('addon', 'Other months', { entity_policies }));
    expect(await paid('addon')).to.deep.equal([
      'addon 2026-01-11..2026-04-11: 5 = 15',
      'm 2026-01-01..2026-02-01: 5 = 5',
      ...OTHER_FROM_FEBRUARY,
    ]);
  });

  it('a line of a period of its own changes its price with that period, also where it is asked for by its day', async () => {
    for (const [customer, fields] of [
      ['price of a quarter', {}],
      ['price of a quarter by its day', { effective_from: '2026-04-01T00:00:00Z' }],
    ] as const) {
      await subscribed(customer, 'Quarters');
      const { id } = (await world.subscription(customer)).line_items[0]!;
      const path = `/subscriptions/lineitems/${id}` as const;
      await world.on('2026-01-15', async () => {
        const inside = { amount: '6', effective_from: '2026-02-01T00:00:00Z' };
        const refused = await world.api.request('PUT', path, { body: inside });
        expect([refused.status, refused.body.message]).to.deep.equal([
          400,
          'effective_from: must be 2026-04-01T00:00:00.000Z: the price of a meter that never resets changes with the period',
        ]);
        const answer = await world.api.request('PUT', path, { body: { amount: '6', ...fields } });
        expect(answer.status, answer.text).to.equal(200);
      });
      expect(await paid(customer)).to.deep.equal([
        'q 2026-01-01..2026-04-01: 5 = 15',
        'q 2026-04-01..2026-07-01: 5 = 30',
      ]);
    }
  });
});
