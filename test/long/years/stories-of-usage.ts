/** Stories of what is used: in arrears, beside a licence, after a trial, committed to, invoiced by a threshold, and free. */
import type { Sold } from './catalogue.ts';
import { inMonths, pathOf, type Story } from './story.ts';

export const inArrearsAndInAdvance: Story[] = [
  {
    name: 'ada',
    title: 'Usage in arrears, from the last day of a month',
    // 4 + 6 + 8 + 10 of a cent each; from 1,000 on half a cent: 11 + 12 + 13 + 14 + 15 + 16 + 17 + 18; 100 late × 0.005
    invoiced: '144.5',
    used: inMonths('10', 'calls', {
      '2028-02': 400,
      '2028-03': 600,
      '2028-04': 800,
      '2028-05': 1000,
      '2028-06': 1200,
      '2028-07': 1400,
      '2028-08': 1600,
      '2028-09': 1800,
      '2028-10': 2000,
      '2028-11': 2200,
      '2028-12': 2400,
      '2029-01': 2600,
    }),
    deeds: [
      ['2028-01-31', 'subscribes to Calls', (world) => world.subscribe('ada', 'Calls')],
      [
        '2028-07-05',
        'sends 100 calls of 20 May, which is final',
        (world) => world.use('ada', 'calls', 100, { at: '2028-05-20T00:00:00Z' }),
      ],
    ],
  },
  {
    name: 'berta',
    title: 'A licence by the year from 29 February, usage by the month',
    // 366 + 1,000 × 0.01 + 2,500 × 0.01 + 300 × 0.01 + 366
    invoiced: '770',
    used: [
      ['2028-03-10', 'calls', 1000],
      ['2028-08-15', 'calls', 2500],
      ['2029-02-10', 'calls', 300],
    ],
    deeds: [['2028-02-29', 'subscribes to Licence', (world) => world.subscribe('berta', 'Licence')]],
  },
  {
    name: 'carl',
    title: 'A trial of 14 days in Berlin, then by the month, and an end at the end of a period',
    // 30 + 100 at the end of the trial; seven times 30; 200 and 100 calls at a cent
    invoiced: '343',
    used: [
      ['2028-03-25', 'calls', 500],
      ['2028-04-10', 'calls', 200],
      ['2028-11-10', 'calls', 100],
    ],
    deeds: [
      [
        '2028-03-20T12:00:00Z',
        'subscribes to Pro with a trial of 14 days, at 13:00 in Berlin',
        (world) => world.subscribe('carl', 'Pro', { trial_period_days: 14, timezone: 'Europe/Berlin' }),
      ],
      [
        '2028-11-15',
        'cancels at the end of the period',
        (world) => world.cancel('carl', { cancellation_type: 'end_of_period' }),
      ],
    ],
  },
];

export const committed = ({ prices }: Sold): Story[] => [
  {
    name: 'fred',
    title: 'A commitment of 100 in each month',
    // 100 for 70; 100 + 40 × 1.5; eight months of nothing at 100; 100 × 15/30 to 16 November
    invoiced: '1110',
    used: [
      ['2028-01-20', 'calls', 70],
      ['2028-02-20', 'calls', 140],
      ['2028-11-10', 'calls', 10],
    ],
    deeds: [
      [
        '2028-01-01',
        'subscribes to One and commits to 100 a month; above it 1.5 times as much',
        (world) =>
          world.subscribe('fred', 'One', {
            line_item_commitments: {
              [prices['One calls']!]: { commitment_amount: '100', overage_factor: '1.5', enable_true_up: true },
            },
          }),
      ],
      ['2028-11-16', 'cancels at once', (world) => world.cancel('fred')],
    ],
  },
  {
    name: 'frida',
    title: 'A commitment of 100 in each quarter, term after term',
    // 60, 40 + 20 × 2, 5 × 2 · 10, 0, 20 and 70 lacking · 0, 0, 100 lacking · 100 + 50 × 2, 10 × 2, 0
    invoiced: '570',
    used: [
      ['2028-01-20', 'calls', 60],
      ['2028-02-20', 'calls', 60],
      ['2028-03-20', 'calls', 5],
      ['2028-04-20', 'calls', 10],
      ['2028-06-20', 'calls', 20],
      ['2028-10-20', 'calls', 150],
      ['2028-11-20', 'calls', 10],
    ],
    deeds: [
      [
        '2028-01-01',
        'subscribes to One and commits to 100 a quarter; above it twice as much',
        (world) =>
          world.subscribe('frida', 'One', {
            commitment_amount: '100',
            overage_factor: '2',
            enable_true_up: true,
            commitment_duration: 'QUARTERLY',
          }),
      ],
    ],
  },
  {
    name: 'fritz',
    title: 'A commitment for the hour of noon, by the clock of New York',
    // noon: 10 + 10 × 3 twice, 4 × 2 twice; other hours: 10 + 4 + 4
    invoiced: '114',
    used: [
      ['2028-01-10T17:30:00Z', 'cpu', 10], // 12:30
      ['2028-03-12T16:30:00Z', 'cpu', 4], // 12:30, the clock went forward this night
      ['2028-03-12T17:30:00Z', 'cpu', 4], // 13:30
      ['2028-07-10T16:30:00Z', 'cpu', 10], // 12:30
      ['2028-07-10T17:30:00Z', 'cpu', 10], // 13:30
      ['2028-11-05T16:30:00Z', 'cpu', 4], // 11:30, the clock went back this night
      ['2028-11-05T17:30:00Z', 'cpu', 4], // 12:30
    ],
    deeds: [
      [
        '2028-01-01T05:00:00Z',
        'subscribes to Cpu at midnight in New York; from 12 to 13 an hour of 5 is committed to, at 2 each, above it three times as much',
        (world) =>
          world.subscribe('fritz', 'Cpu', {
            timezone: 'America/New_York',
            line_item_commitments: {
              [prices['Cpu cpu']!]: {
                is_window_commitment: true,
                commitment_time_buckets: [
                  {
                    start: { hour: 12, minute: 0 },
                    end: { hour: 13, minute: 0 },
                    price: { billing_model: 'FLAT_FEE', amount: '2' },
                    commitment_value: '10',
                    overage_factor: '3',
                  },
                ],
              },
            },
          }),
      ],
    ],
  },
];

export const withThreshold: Story[] = [
  {
    name: 'gina',
    title: 'Invoiced whenever 50 are reached, for two months',
    // 100 × 1, 100 × 0.5, 10 × 0.5 · 60 · 100 × 1 + 200 × 0.5 at the end of March alone · 20 of April
    invoiced: '435',
    used: [
      ['2028-01-03T10:00:00Z', 'calls', 49],
      ['2028-01-04T10:00:00Z', 'calls', 51],
      ['2028-01-08T10:00:00Z', 'calls', 100],
      ['2028-01-20T10:00:00Z', 'calls', 10],
      ['2028-02-10T10:00:00Z', 'calls', 60],
      ['2028-03-10T10:00:00Z', 'calls', 300],
      ['2028-04-05T10:00:00Z', 'calls', 20],
    ],
    deeds: [
      [
        '2028-01-01',
        'subscribes to Slabs with a threshold of 50',
        (world) => world.subscribe('gina', 'Slabs', { auto_invoice_threshold: '50' }),
      ],
      [
        '2028-03-01',
        'has no threshold any more',
        (world) =>
          world.api.request('PUT', pathOf(world, 'gina', '').slice(0, -1), { body: { auto_invoice_threshold: '0' } }),
      ],
      ['2028-04-10', 'cancels at once', (world) => world.cancel('gina')],
    ],
  },
];

export const withAllowance: Story[] = [
  {
    name: 'kurt',
    title: '50 calls of each quarter are free, by months from the 15th',
    // of 30, 30, 30: 0, 10, 30; of 30: 0; of 70: 20, of 5 in the same quarter: 5
    invoiced: '65',
    used: inMonths('20', 'calls', {
      '2028-01': 30,
      '2028-02': 30,
      '2028-03': 30,
      '2028-04': 30,
      '2028-07': 70,
      '2028-08': 5,
    }),
    deeds: [
      [
        '2028-01-15',
        'subscribes to Free, to 15 October',
        (world) => world.subscribe('kurt', 'Free', { end_date: '2028-10-15T00:00:00Z' }),
      ],
    ],
  },
];
