/**
 * Periods that the calendar and the clocks of the world make uneven, from the request to the invoice: the ends of months, 29 February,
 * both changes of the clock, the zones furthest east and west. Each period is charged once, and an event at its last millisecond stands
 * on its invoice, one at its end on the next (docs/rules/periods.md).
 */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

type Row = {
  readonly what: string;
  readonly zone: string;
  readonly period: string;
  readonly count?: number;
  readonly fields?: Record<string, unknown>;
  /** In UTC: where periods begin and end. */
  readonly bounds: readonly string[];
  /** Of a price of 100: what the first period costs, where it is a short one. */
  readonly first?: string;
};

const CALENDAR = { billing_cycle: 'calendar' };

const ROWS: Row[] = [
  {
    what: '31 January in a common year',
    zone: 'UTC',
    period: 'MONTHLY',
    bounds: ['2027-01-31', '2027-02-28', '2027-03-31', '2027-04-30', '2027-05-31'],
  },
  {
    what: '31 January in a leap year',
    zone: 'UTC',
    period: 'MONTHLY',
    bounds: ['2028-01-31', '2028-02-29', '2028-03-31'],
  },
  {
    what: '30 January in a leap year',
    zone: 'UTC',
    period: 'MONTHLY',
    bounds: ['2028-01-30', '2028-02-29', '2028-03-30'],
  },
  {
    what: '31 December, every second month',
    zone: 'UTC',
    period: 'MONTHLY',
    count: 2,
    bounds: ['2027-12-31', '2028-02-29', '2028-04-30', '2028-06-30'],
  },
  {
    what: '31 August, every half-year',
    zone: 'UTC',
    period: 'HALF_YEARLY',
    bounds: ['2027-08-31', '2028-02-29', '2028-08-31', '2029-02-28'],
  },
  {
    what: '29 February, every year, until it comes back',
    zone: 'UTC',
    period: 'ANNUAL',
    bounds: ['2028-02-29', '2029-02-28', '2030-02-28', '2031-02-28', '2032-02-29'],
  },
  {
    what: 'midnight in New York when the clock goes forward',
    zone: 'America/New_York',
    period: 'MONTHLY',
    bounds: ['2027-02-01T05:00', '2027-03-01T05:00', '2027-04-01T04:00', '2027-05-01T04:00'],
  },
  {
    what: 'midnight in New York when the clock goes back',
    zone: 'America/New_York',
    period: 'MONTHLY',
    bounds: ['2027-10-01T04:00', '2027-11-01T04:00', '2027-12-01T05:00'],
  },
  {
    what: 'days in Berlin, one of 23 hours',
    zone: 'Europe/Berlin',
    period: 'DAILY',
    bounds: ['2027-03-26T23:00', '2027-03-27T23:00', '2027-03-28T22:00', '2027-03-29T22:00'],
  },
  {
    what: 'days in Berlin, one of 25 hours',
    zone: 'Europe/Berlin',
    period: 'DAILY',
    bounds: ['2027-10-29T22:00', '2027-10-30T22:00', '2027-10-31T23:00', '2027-11-01T23:00'],
  },
  {
    what: 'half past two on Sundays in Berlin, which is skipped once',
    zone: 'Europe/Berlin',
    period: 'WEEKLY',
    bounds: ['2027-03-21T01:30', '2027-03-28T01:30', '2027-04-04T00:30', '2027-04-11T00:30'],
  },
  {
    what: 'half past one on Sundays in New York, which comes twice once',
    zone: 'America/New_York',
    period: 'WEEKLY',
    bounds: ['2027-10-31T05:30', '2027-11-07T05:30', '2027-11-14T06:30'],
  },
  {
    what: 'a clock that goes back by half an hour',
    zone: 'Australia/Lord_Howe',
    period: 'MONTHLY',
    bounds: ['2027-03-14T13:00', '2027-04-14T13:30', '2027-05-14T13:30'],
  },
  {
    what: 'the ends of months at UTC+13, a day before those of UTC',
    zone: 'Pacific/Apia',
    period: 'MONTHLY',
    bounds: ['2027-01-30T11:00', '2027-02-27T11:00', '2027-03-30T11:00', '2027-04-29T11:00'],
  },
  {
    what: 'quarters of the calendar at UTC+13: the first for 1,079 of 2,160 hours',
    zone: 'Pacific/Tongatapu',
    period: 'QUARTERLY',
    fields: CALENDAR,
    bounds: ['2027-02-14T12:00', '2027-03-31T11:00', '2027-06-30T11:00'],
    first: '49.95',
  },
  {
    what: 'months of the calendar at UTC-11, of a leap year: the first for 20 of 29 days',
    zone: 'Pacific/Pago_Pago',
    period: 'MONTHLY',
    fields: CALENDAR,
    bounds: ['2028-02-10T11:00', '2028-03-01T11:00', '2028-04-01T11:00'],
    first: '68.97',
  },
  {
    what: 'the year of the calendar that begins first and the one that begins last',
    zone: 'Pacific/Kiritimati',
    period: 'ANNUAL',
    fields: CALENDAR,
    bounds: ['2027-12-30T10:00', '2027-12-31T10:00', '2028-12-31T10:00'],
    first: '0.27', // one day of 365
  },
];

describe('scenario: periods of the calendar', () => {
  let world: World;

  before(async () => {
    world = await startWorld({ now: '2033-01-01T00:00:00Z' });
    await world.meter('calls');
    for (const [period, count] of new Map(
      ROWS.map(({ period, count = 1 }) => [`${period} ${count}`, [period, count]] as const),
    ).values()) {
      const terms = { billing_period: period, billing_period_count: count };
      await world.plan(`${period} ${count}`, [
        fixed('100', { ...terms, invoice_cadence: 'ADVANCE', display_name: 'seat' }),
        usage('calls', '1', { ...terms, display_name: 'calls' }),
      ]);
    }
    for (const { what } of ROWS) await world.customer(what);
    await world.send(ROWS.flatMap(({ what, bounds }) => bounds.flatMap((bound) => edges(what, bound))));
    for (const row of ROWS) await subscribe(row);
    await world.on('2033-01-01');
  });
  after(() => world.stop());

  /** One at the last millisecond before the instant, ten at it. */
  function edges(customer: string, bound: string) {
    const at = instant(bound);
    return [
      world.event(customer, 'calls', { n: 1, at: new Date(at - 1).toISOString() }),
      world.event(customer, 'calls', { n: 10, at: new Date(at).toISOString() }),
    ];
  }

  function subscribe({ what, zone, period, count = 1, fields, bounds }: Row) {
    return world.subscribe(what, `${period} ${count}`, {
      billing_period: period,
      billing_period_count: count,
      timezone: zone,
      start_date: iso(bounds[0]!),
      end_date: iso(bounds.at(-1)!),
      ...fields,
    });
  }

  for (const row of ROWS)
    it(`${row.what}, ${row.zone}`, async () => {
      const periods = row.bounds.slice(1).map((end, index) => [iso(row.bounds[index]!), iso(end)] as const);
      const charged = (name: string, quantity: string, amount: (index: number) => string) =>
        periods.map(([start, end], index) => [name, start, end, quantity, amount(index)]);
      const invoices = await world.invoices(row.what);
      const lines = invoices
        .flatMap(({ line_items }) => line_items)
        .map((line) => [line.display_name, iso(line.period_start!), iso(line.period_end!), line.quantity, line.amount]);
      const of = (name: string) => lines.filter(([display_name]) => display_name === name);
      expect(of('seat')).to.deep.equal(charged('seat', '1', (index) => (index === 0 ? (row.first ?? '100') : '100')));
      // Ten at its start and one at its end; what came before the first and at the end of the last is nobody's.
      expect(of('calls')).to.deep.equal(charged('calls', '11', () => '11'));
      expect(invoices, 'the opening, and one at the end of each').to.have.length(periods.length + 1);
      expect((await world.subscription(row.what)).subscription_status).to.equal('cancelled');
    });
});

function instant(bound: string): number {
  return Date.parse(bound.length === 10 ? `${bound}T00:00:00Z` : bound.endsWith('Z') ? bound : `${bound}:00Z`);
}

function iso(bound: string): string {
  return new Date(instant(bound)).toISOString();
}
