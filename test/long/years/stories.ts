/**
 * Thirteen customers of ten kinds, each with the arithmetic of what their year comes to. Everybody's year is 2028, which is a leap
 * year, and goes on to 1 March 2029.
 */
import type { World } from '../../support/world.ts';
import type { Sold } from './catalogue.ts';
import { committed, inArrearsAndInAdvance, withAllowance, withThreshold } from './stories-of-usage.ts';
import { type Deed, pathOf, type Story } from './story.ts';

const PRORATED = { proration_behavior: 'create_prorations' };

export function stories(sold: Sold): Story[] {
  return [
    ...inArrearsAndInAdvance,
    ...thatChange,
    ...committed(sold),
    ...withThreshold,
    ...families,
    ...withAddons(sold),
    ...inPhases(sold),
    ...withAllowance,
  ];
}

const change = (world: World, customer: string, plan: string, fields: object = {}) =>
  world.post(pathOf(world, customer, 'change/v2/execute'), {
    target_plan_id: world.id(`plan ${plan}`),
    ...PRORATED,
    ...fields,
  });

const setSeats = async (world: World, customer: string, quantity: string) => {
  const { line_items } = await world.subscription(customer);
  const line = line_items.find(({ end_date }) => end_date === null);
  return world.post(pathOf(world, customer, 'modify/execute'), {
    type: 'quantity_change',
    quantity_change_params: { line_items: [{ id: line!.id, quantity }] },
  });
};

/** A credit goes to the wallet only as far as its charge was paid. */
const pays = (customer: string, on: string): Deed => [on, 'pays what is due', (world) => world.pay(customer)];

const thatChange: Story[] = [
  {
    name: 'dora',
    title: 'Another plan in May, back in October, and again at the end of the year',
    // 31 × 5, 21 on 11 May, 62 × 5 to October with 1 + 2 of May, 31 × 2, 62 × 3, 1.5 of October
    invoiced: '738.5',
    credit_adjustments: '21', // 62 × 21/31 − 31 × 21/31
    used: [
      ['2028-05-05', 'calls', 100],
      ['2028-05-20', 'calls', 100],
      ['2028-10-05', 'calls', 50],
      ['2028-10-20', 'calls', 50],
    ],
    deeds: [
      ['2028-01-01', 'subscribes to Basic', (world) => world.subscribe('dora', 'Basic')],
      ['2028-05-11', 'changes to Plus', (world) => change(world, 'dora', 'Plus')],
      pays('dora', '2028-10-11'),
      ['2028-10-11', 'changes to Basic', (world) => change(world, 'dora', 'Basic')],
      [
        '2028-12-10',
        'changes to Plus at the end of the period',
        (world) => change(world, 'dora', 'Plus', { change_at: 'end_of_period' }),
      ],
    ],
  },
  {
    name: 'emil',
    title: 'Seats that come and go',
    // 31 × 3; 62 × 21/31 = 42; 93 × 3; 31 × 20/30 = 20.67; 124 × 2; 62 × 7
    invoiced: '1116.67',
    credit_adjustments: '32', // 62 × 16/31
    used: [],
    deeds: [
      ['2028-01-01', 'subscribes to Seats', (world) => world.subscribe('emil', 'Seats')],
      ['2028-03-11', 'has 3 seats', (world) => setSeats(world, 'emil', '3')],
      ['2028-06-11', 'has 4 seats', (world) => setSeats(world, 'emil', '4')],
      pays('emil', '2028-08-16'),
      ['2028-08-16', 'has 2 seats', (world) => setSeats(world, 'emil', '2')],
    ],
  },
];

const modifyFamily = (world: World, type: string, params: object) =>
  world.post(pathOf(world, 'hugo', 'modify/execute'), { type, [`${type}_params`]: params });

const families: Story[] = [
  {
    name: 'hugo',
    title:
      'A parent: north counts all year, south from 10 April to 20 June, and the lab is invoiced with them from 15 July on',
    others: ['lab'],
    // hugo: 50 × 15 and 90 × 1, 100 × 1 + 10 × 0.5, 20 × 1; the lab: 7 × 15 and 1 × 2, 5 × 2
    invoiced: '1082',
    used: [
      ['2028-01-20', 'calls', 40],
      ['2028-01-20', 'calls', 50, 'north'],
      ['2028-04-05', 'calls', 90, 'south'],
      ['2028-04-12', 'calls', 30, 'south'],
      ['2028-04-20', 'calls', 80],
      ['2028-06-10', 'calls', 20, 'south'],
      ['2028-06-25', 'calls', 70, 'south'],
      ['2028-03-10', 'calls', 1, 'lab'],
      ['2028-08-10', 'calls', 5, 'lab'],
    ],
    deeds: [
      [
        '2028-01-01',
        'subscribes to Team, which north inherits; the lab subscribes to Small',
        async (world) => {
          await world.subscribe('hugo', 'Team', {
            inheritance: { external_customer_ids_to_inherit_subscription: ['north'] },
          });
          await world.subscribe('lab', 'Small');
        },
      ],
      [
        '2028-04-10',
        'south joins',
        (world) => modifyFamily(world, 'inheritance', { external_customer_ids_to_inherit_subscription: ['south'] }),
      ],
      [
        '2028-06-20',
        'south leaves',
        (world) => modifyFamily(world, 'inheritance', { action: 'remove', external_customer_ids_to_remove: ['south'] }),
      ],
      [
        '2028-07-15',
        'the lab is invoiced with hugo',
        (world) =>
          modifyFamily(world, 'grouped_invoicing', {
            action: 'add',
            child_subscription_ids: [world.id('subscription lab')],
          }),
      ],
    ],
  },
];

const withAddons = ({ addons }: Sold): Story[] => {
  const attach = async (world: World, name: string, fields: object = {}) => {
    const body = { subscription_id: world.id('subscription ida'), addon_id: addons[name], ...fields };
    return world.post('/subscriptions/addon', body);
  };
  const detach = async (world: World) => {
    const [held] = await world.get(pathOf(world, 'ida', 'addons/associations'));
    const body = { addon_association_id: held!.id };
    return world.api.request('DELETE', '/subscriptions/addon', { body });
  };
  return [
    {
      name: 'ida',
      title: 'Add-ons: one by the month, one by the quarter, one for what is left of a period',
      // 31 × 15; Support: 62 × 21/31 = 42 and 62, then 42 once more; Audit: 91 × 3
      invoiced: '884',
      used: [],
      deeds: [
        ['2028-01-01', 'subscribes to Base', (world) => world.subscribe('ida', 'Base')],
        ['2028-01-11', 'attaches Support', (world) => attach(world, 'Support')],
        ['2028-02-10', 'detaches Support, which stays to the end of the period', detach],
        [
          '2028-03-11',
          'attaches Audit until 11 December',
          (world) => attach(world, 'Audit', { end_date: '2028-12-11T00:00:00Z' }),
        ],
        [
          '2028-07-11',
          'attaches Support for what is left of the period',
          (world) => attach(world, 'Support', { cadence: 'onetime' }),
        ],
      ],
    },
  ];
};

const inPhases = ({ prices }: Sold): Story[] => {
  const at = (day: string) => `2028-${day}T00:00:00Z`;
  const seat = prices['Ramp seat'];
  const phases = [
    { start_date: at('01-01'), end_date: at('01-16'), override_line_items: [{ price_id: seat, amount: '10' }] },
    {
      start_date: at('01-16'),
      end_date: at('03-01'),
      override_line_items: [{ price_id: prices['Ramp calls'], amount: '0.005' }],
    },
    { start_date: at('03-01'), override_line_items: [{ price_id: seat, quantity: '2' }] },
  ];
  const undo = async (world: World) => {
    const { schedules } = await world.get(pathOf(world, 'jan', 'schedules'));
    return world.post(`/subscriptions/schedules/${schedules[0]!.id}/cancel`, {});
  };
  return [
    {
      name: 'jan',
      title: 'Three phases, a cancellation that is undone, and one that is not',
      // 10 × 15/31 + 31 × 16/31 + 100 = 120.84; 31 + 10 + 5; 62 × 9 + 3; twice 31 about 16 June; 1 in December
      invoiced: '790.84',
      credit_adjustments: '44', // 62 × 22/31
      used: [
        ['2028-01-10', 'calls', 1000],
        ['2028-01-20', 'calls', 1000],
        ['2028-03-10', 'calls', 300],
        ['2028-12-05', 'calls', 100],
      ],
      deeds: [
        [
          '2028-01-01',
          'subscribes to Ramp: a seat for 10 to 16 January, calls for half a cent to 1 March, then two seats',
          (world) => world.subscribe('jan', 'Ramp', { phases }),
        ],
        [
          '2028-05-11',
          'cancels on 16 June',
          (world) => world.cancel('jan', { cancellation_type: 'scheduled_date', cancel_at: at('06-16') }),
        ],
        ['2028-06-05', 'undoes the cancellation', undo],
        pays('jan', '2028-12-10'),
        [
          '2028-12-10',
          'cancels at once; what is not used is given back',
          (world) => world.cancel('jan', { cancellation_type: 'immediate', ...PRORATED }),
        ],
      ],
    },
  ];
};
