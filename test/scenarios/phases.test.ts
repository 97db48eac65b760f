/** Phases: what each charges, from its first instant to its last. */
import { expect } from 'chai';
import type { Plan } from '../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scenario: phases', () => {
  let world: World;
  let plan: Plan;
  const prices: Record<string, string> = {};
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('stored', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    plan = await world.plan('Pro', []);
    const terms = {
      seat: fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' }),
      setup: fixed('100', { invoice_cadence: 'ADVANCE', billing_period: 'ONETIME', display_name: 'setup' }),
      calls: usage('calls', '0.01'),
      stored: usage('stored', '1'),
    };
    for (const [name, price] of Object.entries(terms)) prices[name] = (await world.price('Pro', price)).id;
  });
  after(() => world.stop());

  const subscribe = (customer: string, phases: object[], fields: object = {}) =>
    world.subscribe(customer, 'Pro', { phases, ...fields });
  const inline = (
    fields:
      | { amount: string; invoice_cadence: string; display_name: string }
      | { amount: string; billing_period: string; display_name: string },
  ) => ({
    type: 'FIXED',
    price_unit_type: 'FIAT',
    billing_model: 'FLAT_FEE',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ADVANCE',
    ...fields,
  });

  it('three of them: a cheap fortnight, cheaper calls with support, then two seats and a training', async () => {
    const support = inline({ amount: '6.2', invoice_cadence: 'ARREAR', display_name: 'support' });
    const training = inline({ amount: '50', billing_period: 'ONETIME', display_name: 'training' });
    const phases = [
      {
        start_date: '2026-01-01T00:00:00Z',
        end_date: '2026-01-16T00:00:00Z',
        override_line_items: [{ price_id: prices.seat, amount: '10' }],
        metadata: { name: 'first weeks' },
      },
      {
        start_date: '2026-01-16T00:00:00Z',
        end_date: '2026-03-01T00:00:00Z',
        override_line_items: [{ price_id: prices.calls, amount: '0.005' }],
        line_items: [{ price: support }],
      },
      {
        start_date: '2026-03-01T00:00:00Z',
        override_line_items: [{ price_id: prices.seat, quantity: '2' }],
        line_items: [{ price: training }],
      },
    ];
    await world.on('2026-01-01', () => subscribe('ramp', phases));
    await world.on('2026-01-10', () => world.use('ramp', 'calls', 1000));
    await world.on('2026-01-16', () => world.use('ramp', 'calls', 1000));
    await world.on('2026-02-10', () => world.use('ramp', 'calls', 400));
    await world.on('2026-03-10', () => world.use('ramp', 'calls', 300));
    await world.on('2026-04-01');
    expect(await world.statements('ramp')).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 120.84\n' +
        '  seat 2026-01-01..2026-01-16: 1 = 4.84\n  seat 2026-01-16..2026-02-01: 1 = 16\n' +
        '  setup 2026-01-01..2026-01-01: 1 = 100',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 49.2\n' +
        '  seat 2026-02-01..2026-03-01: 1 = 31\n  calls 2026-01-16..2026-02-01: 1000 = 5\n' +
        '  calls 2026-01-01..2026-01-16: 1000 = 10\n  support 2026-01-16..2026-02-01: 1 = 3.2\n' +
        '  stored 2026-01-01..2026-02-01: 0 = 0',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 120.2\n' +
        '  seat 2026-03-01..2026-04-01: 2 = 62\n  calls 2026-02-01..2026-03-01: 400 = 2\n' +
        '  support 2026-02-01..2026-03-01: 1 = 6.2\n  stored 2026-02-01..2026-03-01: 0 = 0\n' +
        '  training 2026-03-01..2026-03-01: 1 = 50',
      'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-04-01 = 65\n' +
        '  seat 2026-04-01..2026-05-01: 2 = 62\n  calls 2026-03-01..2026-04-01: 300 = 3\n' +
        '  stored 2026-03-01..2026-04-01: 0 = 0',
    ]);
    const subscription = await world.subscription('ramp');
    expect(subscription.phases.map(({ start_date, end_date }) => [start_date, end_date])).to.deep.equal([
      ['2026-01-01T00:00:00Z', '2026-01-16T00:00:00Z'],
      ['2026-01-16T00:00:00Z', '2026-03-01T00:00:00Z'],
      ['2026-03-01T00:00:00Z', null],
    ]);
    expect(subscription.phases[0]!.metadata).to.deep.equal({ name: 'first weeks' });
    const phaseOf = (name: string) =>
      subscription.line_items
        .filter(({ display_name }) => display_name === name)
        .map(({ subscription_phase_id }) => subscription.phases.findIndex(({ id }) => id === subscription_phase_id));
    expect(['seat', 'setup', 'calls', 'support', 'training'].map(phaseOf)).to.deep.equal([
      [0, -1, 2],
      [-1],
      [-1, 1, -1],
      [1],
      [2],
    ]);
  });

  it('after a last phase that ends the terms beside the phases hold, and what never resets changes with a period', async () => {
    const phase = {
      start_date: '2026-05-01T00:00:00Z',
      end_date: '2026-05-16T00:00:00Z',
      override_line_items: [{ price_id: prices.stored, amount: '0.1' }],
    };
    const always = [{ price_id: prices.stored, amount: '0.5' }];
    await world.on('2026-05-01', () => subscribe('stored', [phase], { override_line_items: always }));
    await world.use('stored', 'stored', 100);
    await world.on('2026-07-01');
    const lines = (await world.statements('stored')).flatMap((said) => said.match(/stored .*/g) ?? []);
    expect(lines).to.deep.equal([
      'stored 2026-05-01..2026-06-01: 100 = 10', // the phase ends inside of it
      'stored 2026-06-01..2026-07-01: 100 = 50',
    ]);
  });

  it('a cancellation ends the phases that are still to come', async () => {
    const later = {
      start_date: '2026-09-10T00:00:00Z',
      override_line_items: [{ price_id: prices.seat, amount: '62' }],
    };
    const first = { start_date: '2026-08-10T00:00:00Z', end_date: later.start_date };
    await world.on('2026-08-10', () => subscribe('leaver', [first, later]));
    await world.on('2026-08-20', () => world.cancel('leaver'));
    await world.on('2026-10-10');
    expect((await world.statements('leaver')).join()).not.to.contain('62');
  });

  describe('refuses', () => {
    const START = '2026-11-01T00:00:00Z';
    const phase = (fields: object = {}) => ({ start_date: START, ...fields });
    const end = '2026-12-01T00:00:00Z';
    const refused = [
      [
        'a first one that does not begin with the subscription',
        () => ({ phases: [phase({ start_date: end })] }),
        'phases[0].start_date',
      ],
      ['one without an end before another', () => ({ phases: [phase(), phase()] }), 'phases[0].end_date'],
      [
        'a gap',
        () => ({ phases: [phase({ end_date: end }), phase({ start_date: '2026-12-02T00:00:00Z' })] }),
        'phases[1].start_date',
      ],
      ['one that lasts no time', () => ({ phases: [phase({ end_date: START })] }), 'phases[0].end_date'],
      [
        'one beyond the end',
        () => ({ phases: [phase({ end_date: end })], end_date: '2026-11-20T00:00:00Z' }),
        'phases[0].end_date',
      ],
      ['a draft', () => ({ phases: [phase()], subscription_status: 'draft' }), 'phases'],
      [
        'what is charged once, later',
        () => ({
          phases: [
            phase({ end_date: end }),
            phase({ start_date: end, override_line_items: [{ price_id: prices.setup, amount: '1' }] }),
          ],
        }),
        'phases[1].override_line_items',
      ],
      [
        'a strange price',
        () => ({ phases: [phase({ override_line_items: [{ price_id: 'price_no', amount: '1' }] })] }),
        'phases[0].override_line_items[0].price_id',
      ],
      [
        'a line outside of it',
        () => ({ phases: [phase({ end_date: end, line_items: [{ price_id: prices.seat, start_date: end }] })] }),
        'phases[0].line_items[0].start_date',
      ],
      [
        'a line beyond it',
        () => ({
          phases: [phase({ end_date: end, line_items: [{ price_id: prices.seat, end_date: '2026-12-02T00:00:00Z' }] })],
        }),
        'phases[0].line_items[0].end_date',
      ],
      ['a coupon', () => ({ phases: [phase({ coupons: ['x'] })] }), 'phases[0].coupons[0]'],
    ] as const;
    for (const [name, fields, field] of refused) {
      it(name, async () => {
        world.at('2026-10-20');
        await world.on('2026-10-20');
        const body = { external_customer_id: 'ramp', plan_id: plan.id, currency: 'usd', billing_period: 'MONTHLY' };
        const answer = await world.api.request('POST', '/subscriptions', {
          body: { ...body, start_date: START, ...fields() },
        });
        expect([answer.status, answer.body.details?.field], answer.text).to.deep.equal([400, field]);
      });
    }
  });
});
