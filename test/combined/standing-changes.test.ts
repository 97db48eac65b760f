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
  let addon_id: string;
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
    addon_id = (await world.post('/addons', { name: 'Seats', lookup_key: 'more-seats', type: 'onetime' })).id;
    const own = { entity_type: 'ADDON', entity_id: addon_id };
    await world.price('Quarters', named('addon', '3', { ...QUARTERLY, ...own }));
  });
  after(() => world.stop());

  /** A customer who has five seats from 2 January on, and changes on days of this half-year. */
  type Story = {
    readonly title: string;
    readonly plan: string;
    readonly desks?: number;
    readonly changes: readonly (readonly [date: string, change: (customer: string) => Promise<unknown>])[];
    /** The lines of all invoices of the half-year. */
    readonly lines: readonly string[];
  };
  const toPlan =
    (plan: string, fields: Fields = {}) =>
    (customer: string) =>
      world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/change/v2/execute`, {
        target_plan_id: world.id(`plan ${plan}`),
        proration_behavior: 'create_prorations',
        ...fields,
      });
  const firstLine = async (customer: string) => (await world.subscription(customer)).line_items[0]!.id;

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
  const OTHER_FROM_APRIL = ['04', '05', '06'].map((month, at) => `o 2026-${month}-01..2026-0${at + 5}-01: 5 = 10`);
  const OTHER_FROM_FEBRUARY = ['02', '03', '04', '05', '06'].map(
    (month, at) => `o 2026-${month}-01..2026-0${at + 3}-01: 5 = 10`,
  );
  const QUARTER = 'q 2026-01-01..2026-04-01: 5 = 15';

  const repriced = (fields: Fields) => async (customer: string) => {
    const path = `/subscriptions/lineitems/${await firstLine(customer)}` as const;
    const inside = { amount: '6', effective_from: '2026-02-01T00:00:00Z' };
    const refused = await world.api.request('PUT', path, { body: inside });
    expect([refused.status, refused.body.message]).to.deep.equal([
      400,
      'effective_from: must be 2026-04-01T00:00:00.000Z: the price of a meter that never resets changes with the period',
    ]);
    const answer = await world.api.request('PUT', path, { body: { amount: '6', ...fields } });
    expect(answer.status, answer.text).to.equal(200);
  };

  const STORIES: readonly Story[] = [
    ...CHANGES.map(
      ([title, plan, to, lines]): Story => ({
        title,
        plan,
        desks: 4,
        changes: [['2026-01-15', toPlan(to)]],
        lines,
      }),
    ),
    {
      title:
        'changed twice while the quarter of the first plan stands: the third begins behind it, and the second never does',
      plan: 'Quarters',
      changes: [
        ['2026-01-15', toPlan('Months')],
        ['2026-01-20', toPlan('Quarters')],
      ],
      lines: [QUARTER, 'q 2026-04-01..2026-07-01: 5 = 15'],
    },
    {
      title: 'changed at the end of a period, and again without proration',
      plan: 'Quarters',
      changes: [
        ['2026-01-15', toPlan('Months', { change_at: 'end_of_period' })],
        ['2026-02-10', toPlan('Other months', { proration_behavior: 'none' })],
      ],
      lines: [...OTHER_FROM_APRIL, QUARTER],
    },
    {
      title: 'a line that has not begun never does',
      plan: 'With months later',
      changes: [['2026-01-15', toPlan('Other months')]],
      lines: [...OTHER_FROM_APRIL, QUARTER],
    },
    {
      title: 'a line that ends inside its period has paid for all of it',
      plan: 'Months',
      changes: [
        [
          '2026-01-10',
          async (customer) => {
            const body = { effective_from: '2026-01-20T00:00:00Z' };
            await world.api.request('DELETE', `/subscriptions/lineitems/${await firstLine(customer)}`, { body });
          },
        ],
        ['2026-01-15', toPlan('Other months')],
      ],
      lines: ['m 2026-01-01..2026-01-20: 5 = 5', ...OTHER_FROM_FEBRUARY],
    },
    {
      title: 'what an add-on charges besides ends with its own period, and the plan does not wait for it',
      plan: 'Months',
      changes: [
        [
          '2026-01-11',
          (customer) =>
            world.post('/subscriptions/addon', { subscription_id: world.id(`subscription ${customer}`), addon_id }),
        ],
        ['2026-01-15', toPlan('Other months', { entity_policies: { addons: { default_behaviour: 'drop' } } })],
      ],
      lines: ['addon 2026-01-11..2026-04-11: 5 = 15', 'm 2026-01-01..2026-02-01: 5 = 5', ...OTHER_FROM_FEBRUARY],
    },
    ...[{}, { effective_from: '2026-04-01T00:00:00Z' }].map(
      (fields): Story => ({
        title: `a line of a period of its own changes its price with that period, asked for with ${JSON.stringify(fields)}`,
        plan: 'Quarters',
        changes: [['2026-01-15', repriced(fields)]],
        lines: [QUARTER, 'q 2026-04-01..2026-07-01: 5 = 30'],
      }),
    ),
  ];

  // All of them live through the half-year beside each other.
  before(async () => {
    await world.on('2026-01-01');
    for (const { title, plan } of STORIES) await world.subscribe(title, plan);
    await world.send(
      STORIES.flatMap(({ title, desks }) => [
        world.event(title, 'seats', { n: 5, at: '2026-01-02T00:00:00Z' }),
        ...(desks ? [world.event(title, 'desks', { n: desks, at: '2026-01-03T00:00:00Z' })] : []),
      ]),
    );
    const days = STORIES.flatMap(({ title, changes }) =>
      changes.map(([date, change]) => ({ date, change: () => change(title) })),
    );
    for (const { date, change } of days.sort((a, b) => (a.date < b.date ? -1 : 1))) await world.on(date, change);
    await world.on('2026-07-02');
  });

  for (const { title, lines } of STORIES)
    it(title, async () => {
      const all = (await world.statements(title)).flatMap((text) => text.split('\n').slice(1));
      expect(all.map((line) => line.trim()).sort()).to.deep.equal(lines);
    });
});
