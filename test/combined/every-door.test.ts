/**
 * One question, asked at every door: what did this customer use in the running period, and what does it cost? Usage by
 * meter, the customer's usage, analytics, the subscription's usage, preview, draft, final invoice and CSV say one number
 * (docs/rules/usage.md, "One number"), of a meter that begins anew with each period and of one that never resets.
 */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice } from '../support/answers.ts';
import { downloadOnce, type Exports } from '../support/exported.ts';
import { startWorld, usage, type World } from '../support/world.ts';

/** Quantity and amount by the name of the meter; an amount where the door knows the price. */
type Said = Record<string, readonly [string, string]>;
type Range = { start_time: string; end_time: string };
type Case = {
  customer: string;
  plan: string;
  title: string;
  /** The running period, as far as it is billed. */
  period: Range;
  said: Said;
  subscription?: Record<string, unknown>;
  cancel_at?: string;
  /** What the line of calls is committed to. */
  commitment?: Record<string, unknown>;
  /** False where the lines are on a later invoice than the next one. */
  isPreviewed?: boolean;
};

const at = (day: string) => `2026-${day}T00:00:00Z`;
const FEBRUARY = { start_time: at('02-01'), end_time: at('03-01') };
const BEGUN = at('01-01');

/** In January 3 seats and 7 calls; in February 2 seats and 5 calls on the 10th, 1 seat and 4 calls on the 16th. */
const CASES: Case[] = [
  {
    title: 'lines from the first day on',
    customer: 'early',
    plan: 'From January',
    period: FEBRUARY,
    said: { calls: ['9', '9'], seats: ['6', '12'] },
  },
  {
    title: 'lines that start a month late: what never resets counts from the start of the subscription',
    customer: 'late',
    plan: 'From February',
    period: FEBRUARY,
    said: { calls: ['9', '9'], seats: ['6', '12'] },
  },
  {
    title: 'lines that start inside the period',
    customer: 'later',
    plan: 'From 12 February',
    period: { start_time: at('02-12'), end_time: at('03-01') },
    said: { calls: ['4', '4'], seats: ['6', '12'] },
  },
  {
    title: 'lines that are still to start inside the period',
    customer: 'to come',
    plan: 'From 16 February',
    period: { start_time: at('02-16'), end_time: at('03-01') },
    said: { calls: ['4', '4'], seats: ['6', '12'] },
  },
  {
    title: 'a cancellation that is scheduled inside the period',
    customer: 'leaving',
    plan: 'From February',
    cancel_at: at('02-15'),
    period: { start_time: at('02-01'), end_time: at('02-15') },
    said: { calls: ['5', '5'], seats: ['5', '10'] },
  },
  {
    title: 'an anchor that lies in the next year: a month on its grid',
    customer: 'anchored',
    plan: 'From January',
    subscription: { billing_anchor: '2027-08-12T00:00:00Z' },
    period: { start_time: at('02-12'), end_time: at('03-12') },
    said: { calls: ['4', '4'], seats: ['6', '12'] },
  },
  {
    title: 'a quarter that its lines join a month late',
    customer: 'quarterly',
    plan: 'Quarters from February',
    subscription: { billing_period: 'QUARTERLY' },
    period: { start_time: at('02-01'), end_time: at('04-01') },
    said: { calls: ['9', '9'], seats: ['6', '12'] },
  },
  {
    title: 'lines with a longer period than the subscription’s own',
    customer: 'own periods',
    plan: 'Quarters from February',
    period: { start_time: at('02-01'), end_time: at('05-01') },
    isPreviewed: false,
    said: { calls: ['9', '9'], seats: ['6', '12'] },
  },
  {
    title: 'a commitment that is not reached, and is made up for',
    customer: 'committed',
    plan: 'Committed',
    commitment: { commitment_amount: '20', enable_true_up: true },
    period: FEBRUARY,
    said: { calls: ['9', '20'], seats: ['6', '12'] },
  },
  {
    title: 'a commitment that is passed: what is above costs thrice as much',
    customer: 'above',
    plan: 'Committed',
    commitment: { commitment_quantity: '4', overage_factor: '3' },
    period: FEBRUARY,
    said: { calls: ['9', '19'], seats: ['6', '12'] },
  },
];

/** test/files/events-export-amounts.test.ts compares the days of a period that is over with its invoice. */
const BY_DAY = 'GET /events/usage/export with amounts, day by day';

describe('scenario: every door says one number', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    const lines = (fields: Record<string, unknown>) => [usage('calls', '1', fields), usage('seats', '2', fields)];
    await world.plan('From January', lines({}));
    await world.plan('From February', lines({ start_date: at('02-01') }));
    await world.plan('From 12 February', lines({ start_date: at('02-12') }));
    await world.plan('From 16 February', lines({ start_date: at('02-16') }));
    await world.plan('Quarters from February', lines({ start_date: at('02-01'), billing_period: 'QUARTERLY' }));
    await world.plan('Committed', []);
    const [calls] = await Promise.all(lines({}).map((line) => world.price('Committed', line)));
    await world.on('2026-01-01');
    for (const { customer, plan, subscription, commitment } of CASES) {
      const ofLine = commitment && { line_item_commitments: { [calls!.id]: commitment } };
      await world.subscribe(customer, plan, { ...subscription, ...ofLine });
    }
    await world.send(
      CASES.flatMap(({ customer }) => [
        world.event(customer, 'seats', { n: 3, at: at('01-10') }),
        world.event(customer, 'calls', { n: 7, at: at('01-10') }),
        world.event(customer, 'seats', { n: 2, at: at('02-10') }),
        world.event(customer, 'calls', { n: 5, at: at('02-10') }),
        world.event(customer, 'seats', { n: 1, at: at('02-16') }),
        world.event(customer, 'calls', { n: 4, at: at('02-16') }),
      ]),
    );
    await world.on('2026-02-13');
    for (const { customer, cancel_at } of CASES)
      if (cancel_at) await world.cancel(customer, { cancellation_type: 'scheduled_date', cancel_at });
    await world.waitForPipeline();
  });
  after(() => world.stop());

  /** Where the events of a meter are counted that a line with this period pays for. */
  const windowOf = (meter: string, { start_time, end_time }: Range): Range =>
    meter === 'seats' ? { start_time: BEGUN, end_time } : { start_time, end_time };

  const quantities = (said: Said) =>
    Object.fromEntries(Object.entries(said).map(([meter, [quantity]]) => [meter, quantity]));
  const lines = <Line>(
    all: readonly Line[],
    name: (line: Line) => string,
    told: (line: Line) => [string, string],
  ): Said => Object.fromEntries(all.map((line) => [name(line), told(line)]));
  const meterName = (id: string) => ['calls', 'seats'].find((name) => world.id(`meter ${name}`) === id)!;

  /** Each door without prices is asked about the window of each meter. */
  async function measured(period: Range, ask: (meter_id: string, window: Range) => Promise<string>) {
    const found: Record<string, string> = {};
    for (const meter of ['calls', 'seats'])
      found[meter] = await ask(world.id(`meter ${meter}`), windowOf(meter, period));
    return found;
  }

  const METER_DOORS: Record<string, (customer: string, meter_id: string, window: Range) => Promise<string>> = {
    'POST /events/usage/meter': async (external_customer_id, meter_id, window) =>
      (await world.post('/events/usage/meter', { external_customer_id, meter_id, ...window })).value,
    'POST /meter-usage/query': async (external_customer_id, meter_id, window) =>
      (await world.post('/meter-usage/query', { external_customer_id, meter_id, aggregation_type: 'SUM', ...window }))
        .total_value,
    'POST /meter-usage/analytics': async (external_customer_id, meter_id, window) => {
      const asked = { external_customer_id, meter_ids: [meter_id], aggregation_type: 'SUM', ...window };
      return (await world.post('/meter-usage/analytics', asked)).items[0]!.total_value;
    },
    'GET /events/usage/export': async (customer, meter_id, { start_time, end_time }) => {
      const range = `start_time=${start_time}&end_time=${end_time}&meter_ids=${meter_id}`;
      const rows = await downloadOnce(world, exports, range);
      return rows.find((row) => row.external_customer_id === customer)!.usage!;
    },
  };

  const PRICED_DOORS: Record<string, (one: Case) => Promise<Said>> = {
    'POST /events/analytics': async ({ customer, period }) => {
      const { items } = await world.post('/events/analytics', { external_customer_id: customer, ...period });
      return lines(
        items,
        (item) => meterName(item.meter_id),
        (item) => [item.total_usage, item.total_cost!],
      );
    },
    'POST /meter-usage/detailed-analytics': async ({ customer, period }) => {
      const asked = { external_customer_id: customer, ...period };
      const { items } = await world.post('/meter-usage/detailed-analytics', asked);
      return lines(
        items,
        (item) => meterName(item.meter_id),
        (item) => [item.total_usage, item.total_cost!],
      );
    },
    'GET /events/usage/export with amounts': ({ customer, period }) => exported(customer, period),
    [BY_DAY]: ({ customer, period }) => exported(customer, period, '&split=day'),
    'POST /subscriptions/usage of the dates': ({ customer, period }) => subscriptionUsage(customer, period),
  };

  /** An export has all customers, so the cases of one period share it until the period is over. */
  const exports: Exports = new Map();

  /** What a spreadsheet makes of the file: the sums of its columns by meter. */
  async function exported(customer: string, { start_time, end_time }: Range, more = ''): Promise<Said> {
    const asked = `start_time=${start_time}&end_time=${end_time}&amounts=true${more}`;
    const all = await downloadOnce(world, exports, asked);
    const rows = all.filter((row) => row.external_customer_id === customer);
    const sum = (meter: string, column: string) =>
      sumDecimals(rows.filter((row) => row.meter_name === meter).map((row) => new Decimal(row[column]!))).toFixed();
    const meters = [...new Set(rows.map((row) => row.meter_name!))];
    return Object.fromEntries(meters.map((meter) => [meter, [sum(meter, 'usage'), sum(meter, 'amount')]]));
  }

  async function subscriptionUsage(customer: string, range: Partial<Range>): Promise<Said> {
    const asked = { subscription_id: world.id(`subscription ${customer}`), ...range };
    const { charges } = await world.post('/subscriptions/usage', asked);
    return lines(
      charges,
      (charge) => charge.meter_display_name!,
      (charge) => [charge.quantity, charge.amount],
    );
  }

  function invoiced(invoice: Invoice): Said {
    return lines(
      invoice.line_items,
      (line) => line.meter_display_name!,
      (line) => [line.quantity, line.amount],
    );
  }

  /** The invoice that pays for the period of the case. */
  async function invoiceOf({ customer, period }: Case) {
    const all = await world.invoices(customer);
    return all.find(({ line_items }) =>
      line_items.some((line) => Date.parse(line.period_end!) === Date.parse(period.end_time)),
    );
  }

  for (const one of CASES) {
    describe(one.title, () => {
      for (const [name, ask] of Object.entries(METER_DOORS))
        it(`${name}, in the windows that the lines pay for`, async () => {
          const found = await measured(one.period, (meter_id, window) => ask(one.customer, meter_id, window));
          expect(found).to.deep.equal(quantities(one.said));
        });
      for (const [name, ask] of Object.entries(PRICED_DOORS))
        it(name, async () => expect(await ask(one)).to.deep.equal(one.said));

      it('POST /subscriptions/usage of the running period', async () =>
        expect(await subscriptionUsage(one.customer, {})).to.deep.equal(one.said));
      if (one.isPreviewed !== false)
        it('POST /invoices/preview', async () =>
          expect(invoiced(await world.preview(one.customer))).to.deep.equal(one.said));
    });
  }

  describe('when the period is over', () => {
    it('the drafts', async () => {
      await world.on('2026-05-01');
      exports.clear();
      for (const one of CASES) {
        const draft = await invoiceOf(one);
        expect({ ...draft, said: invoiced(draft!) }, one.title).to.deep.include({
          invoice_status: 'DRAFT',
          said: one.said,
        });
      }
    });

    it('the final invoices, and the other doors about a period that is over', async () => {
      await world.finalize();
      for (const one of CASES) {
        const final = await invoiceOf(one);
        expect({ ...final, said: invoiced(final!) }, one.title).to.deep.include({
          invoice_status: 'FINALIZED',
          said: one.said,
        });
        for (const [name, ask] of Object.entries(PRICED_DOORS))
          if (name !== BY_DAY || one.period === FEBRUARY)
            expect(await ask(one), `${name}: ${one.title}`).to.deep.equal(one.said);
      }
    });
  });
});
