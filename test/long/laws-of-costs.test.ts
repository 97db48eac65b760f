/**
 * Cost analytics on random histories: costs are those of a plain model, whatever is measured, priced and asked for; revenue is that of
 * the invoices (docs/rules/costs.md, "Revenue and invoices agree").
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { CostItem, InvoiceLine } from '../support/answers.ts';
import { chargeByModel, type ModelTerms } from '../support/invoice-model.ts';
import { type ModelEvent, type ModelMeter, usageByModel } from '../support/reference-model.ts';
import { samples } from '../support/samples.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

const METERS: Record<string, ModelMeter['aggregation']> = {
  sums: { type: 'SUM', field: 'n' },
  counts: { type: 'COUNT' },
  peaks: { type: 'MAX', field: 'n' },
  means: { type: 'AVG', field: 'n' },
  latest: { type: 'LATEST', field: 'n' },
  users: { type: 'COUNT_UNIQUE', field: 'n' },
  hours: { type: 'MAX', field: 'n', bucket_size: 'HOUR' },
};
const RUNNING = ['sums', 'counts', 'peaks', 'means', 'latest', 'users'];
const BEGIN = Date.parse('2026-01-01T00:00:00Z');
const DAY = 86_400_000;

const unitPrice = fc.constantFrom('0', '0.000123', '0.01', '0.333333', '2.5');
const terms: fc.Arbitrary<ModelTerms> = fc.oneof(
  fc.record({ model: fc.constant('FLAT_FEE' as const), amount: unitPrice }),
  fc.record({
    model: fc.constant('PACKAGE' as const),
    amount: unitPrice,
    divide_by: fc.integer({ min: 1, max: 9 }),
    round: fc.constantFrom('up' as const, 'down' as const),
  }),
  fc.record({
    model: fc.constantFrom('SLAB' as const, 'VOLUME' as const),
    tiers: fc.tuple(unitPrice, unitPrice, unitPrice).map(([first, second, flat_amount]) => [
      { up_to: 5, unit_amount: first },
      { up_to: null, unit_amount: second, flat_amount },
    ]),
  }),
);
const event = fc.record({
  name: fc.constantFrom(...Object.keys(METERS)),
  customer: fc.constantFrom('a', 'b', 'c'),
  source: fc.constantFrom('x', 'y'),
  at: fc.integer({ min: 0, max: 20 * DAY - 1 }),
  n: fc.constantFrom('0', '1', '2.5', '7', '12', '-3', '0.125'),
});
const range = fc
  .tuple(fc.integer({ min: 0, max: 10 * DAY }), fc.integer({ min: 1, max: 12 * DAY }))
  .map(([start, length]) => ({ start: BEGIN + start, end: BEGIN + start + length }));

const iso = (ms: number) => new Date(ms).toISOString();
const dec = (text: string) => new Decimal(text);
const total = (texts: readonly string[]) => sumDecimals(texts.map(dec)).toFixed();

function priceBody(model: ModelTerms): object {
  if (model.model === 'FLAT_FEE') return { billing_model: 'FLAT_FEE', amount: model.amount };
  if (model.model === 'PACKAGE') {
    const { amount, divide_by, round } = model;
    return { billing_model: 'PACKAGE', amount, transform_quantity: { divide_by, round } };
  }
  return { billing_model: 'TIERED', tier_mode: model.model, tiers: model.tiers };
}

type Amount = 'amount' | 'line_item_discount' | 'invoice_level_discount' | 'prepaid_credits_applied';

describe('laws of cost analytics', () => {
  let world: World;
  const ask = async <Path extends string>(path: Path, body: object) => {
    const answer = await world.api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    for (const [name, aggregation] of Object.entries(METERS)) await world.meter(name, aggregation);
  });
  after(() => world.stop());

  describe('costs', () => {
    let run = 0;

    async function sheetOf(models: Record<string, ModelTerms>): Promise<void> {
      const { costsheet } = await world.post('/costs', { name: `costs ${run}` });
      for (const [name, model] of Object.entries(models))
        await world.post('/prices', {
          entity_type: 'COSTSHEET',
          entity_id: costsheet.id,
          currency: 'usd',
          type: 'USAGE',
          billing_period: 'MONTHLY',
          billing_period_count: 1,
          billing_cadence: 'RECURRING',
          invoice_cadence: 'ARREAR',
          price_unit_type: 'FIAT',
          meter_id: world.id(`meter ${name}`),
          ...priceBody(model),
        });
    }

    const drawn = fc.record({
      models: fc.record(Object.fromEntries(Object.keys(METERS).map((name) => [name, terms]))),
      events: fc.array(event, { minLength: 5, maxLength: 60 }),
      ranges: fc.array(range, { minLength: 3, maxLength: 3 }),
    });

    it('are those of a plain model; days and sources add up to them', async () => {
      await fc.assert(
        fc.asyncProperty(drawn, async ({ models, events, ranges }) => {
          run += 1;
          world.at('2026-01-01');
          await sheetOf(models as Record<string, ModelTerms>);
          const sent: ModelEvent[] = events.map(({ name, customer, source, at, n }, index) => ({
            event_id: `${run}-${index}`,
            event_name: name,
            external_customer_id: `${customer} ${run}`,
            timestamp: iso(BEGIN + at),
            source,
            properties: { n },
          }));
          world.at('2026-02-01');
          await world.send(sent as never);
          await world.waitForPipeline();
          for (const { start, end } of ranges) {
            const body = { start_time: iso(start), end_time: iso(end), limit: 1000 };
            const answer = await ask('/costs/analytics-v2', body);
            const own = (item: CostItem) => item.external_customer_id!.endsWith(` ${run}`);
            const items = answer.cost_analytics.filter(own);
            const said = items.map((item) => [
              item.external_customer_id,
              item.meter_name,
              item.total_quantity,
              item.total_cost,
            ]);
            expect(said.sort()).to.deep.equal(expected({ models, sent, start, end }).sort());
            expect(answer.total_cost).to.equal(total(answer.cost_analytics.map((item) => item.total_cost)));
            for (const item of items) checkPoints(item, { models, sent, start, end });
            const { cost_analytics: bySource } = await ask('/costs/analytics-v2', { ...body, group_by: ['source'] });
            for (const { external_customer_id, meter_name, total_cost } of items) {
              const parts = bySource.filter(
                (part) => part.external_customer_id === external_customer_id && part.meter_name === meter_name,
              );
              expect(total(parts.map((part) => part.total_cost))).to.equal(total_cost);
              for (const part of parts)
                expect(total(part.cost_by_period!.map(({ cost }) => cost))).to.equal(part.total_cost);
            }
          }
        }),
        { numRuns: samples(6) },
      );
    });

    type Told = { models: unknown; sent: readonly ModelEvent[]; start: number; end: number };

    function expected({ models, sent, start, end }: Told): string[][] {
      return ['a', 'b', 'c'].flatMap((letter) =>
        Object.entries(METERS).flatMap(([name, aggregation]) => {
          const customer = `${letter} ${run}`;
          const meter = { event_name: name, aggregation };
          const measured = usageByModel(meter, sent, { start: iso(start), end: iso(end), customers: [customer] });
          if (measured.event_count === 0) return [];
          const cost = chargeByModel((models as Record<string, ModelTerms>)[name]!, measured);
          return [[customer, name, measured.value, cost.toFixed()]];
        }),
      );
    }

    function checkPoints(item: CostItem, { models, sent, start, end }: Told): void {
      const points = item.cost_by_period;
      expect(total(points!.map(({ cost }) => cost)), JSON.stringify(item)).to.equal(item.total_cost);
      expect(points!.reduce((sum, { event_count }) => sum + event_count, 0)).to.equal(item.total_events);
      if (!RUNNING.includes(item.meter_name!)) return;
      // A day costs what the range costs until its end less what it costs until its beginning.
      const meter = { event_name: item.meter_name!, aggregation: METERS[item.meter_name!]! };
      const model = (models as Record<string, ModelTerms>)[item.meter_name!]!;
      const until = (at: number) => {
        const bounds = { start: iso(start), end: iso(Math.min(at, end)), customers: [item.external_customer_id!] };
        return at <= start ? new Decimal(0) : dec(chargeByModel(model, usageByModel(meter, sent, bounds)).toFixed());
      };
      for (const { timestamp, cost } of points!) {
        const day = Date.parse(timestamp);
        expect(cost, timestamp).to.equal(
          until(day + DAY)
            .minus(until(day))
            .toFixed(),
        );
      }
    }
  });

  describe('revenue', () => {
    const customer = fc.record({
      start: fc.integer({ min: 0, max: 14 }),
      advance: fc.constantFrom(null, '31', '10.01'),
      arrear: fc.constantFrom(null, '7.77', '100'),
      sold: fc.constantFrom('flat', 'tiers'),
      quarterly: fc.boolean(),
      commitment: fc.constantFrom(null, 'line', 'subscription'),
      coupon: fc.boolean(),
      credits: fc.constantFrom(null, '5'),
      used: fc.array(fc.record({ at: fc.integer({ min: 0, max: 70 * DAY }), n: fc.integer({ min: 1, max: 40 }) }), {
        maxLength: 8,
      }),
      late: fc.boolean(),
      cut: fc.integer({ min: 1, max: 27 * DAY }),
    });
    type Drawn = typeof customer extends fc.Arbitrary<infer One> ? One : never;
    let names = 0;
    let year = 2026;
    const met = { drafts: 0, minimums: 0, discounts: 0, credits: 0 };

    async function subscribe(name: string, drawn: Drawn): Promise<void> {
      const { advance, arrear, sold, commitment, coupon, credits, quarterly } = drawn;
      await world.plan(name, [
        ...(advance ? [fixed(advance, { invoice_cadence: 'ADVANCE' })] : []),
        ...(arrear ? [fixed(arrear, quarterly ? { billing_period: 'QUARTERLY' } : {})] : []),
      ]);
      const charge =
        sold === 'flat'
          ? usage('sums', '0.37')
          : tiers('sums', [
              [10, '1'],
              [null, '0.5', '3'],
            ]);
      const price = await world.price(name, charge);
      if (coupon) {
        const coupon_code = name;
        await world.post('/coupons', {
          name,
          coupon_code,
          type: 'percentage',
          percentage_off: '10',
          cadence: 'forever',
        });
      }
      await world.customer(name);
      if (credits)
        await world.post('/wallets', {
          customer_id: world.id(`customer ${name}`),
          currency: 'usd',
          initial_credits_to_load: credits,
        });
      await world.subscribe(name, name, {
        ...(coupon ? { subscription_coupons: [{ coupon_code: name }] } : {}),
        ...(commitment === 'line'
          ? { line_item_commitments: { [price.id]: { commitment_amount: '20', enable_true_up: true } } }
          : {}),
        ...(commitment === 'subscription'
          ? { commitment_amount: '20', overage_factor: '1.5', enable_true_up: true }
          : {}),
      });
    }

    const periodsOf = async (name: string): Promise<{ start: number; end: number }> => {
      const { current_period_start, current_period_end } = await world.subscription(name);
      return { start: Date.parse(current_period_start), end: Date.parse(current_period_end) };
    };
    const analytics = (name: string | null, { start, end }: { start: number; end: number }) =>
      ask('/costs/analytics-v2', { external_customer_id: name, start_time: iso(start), end_time: iso(end) });
    const linesOf = async (name: string) => {
      const invoices = await world.invoices(name);
      return invoices.flatMap((invoice) =>
        invoice.invoice_status === 'VOIDED'
          ? []
          : invoice.line_items.map((line) => ({ ...line, invoice_status: invoice.invoice_status })),
      );
    };
    /** What of an amount falls into a period, evenly over the time of its line: up to each instant in whole cents. */
    const sharesIn = (
      line: Partial<Record<Amount, string>> & { period_start: string | null; period_end: string | null },
      { start, end }: { start: number; end: number },
      fields: readonly Amount[],
    ): string => {
      const [from, to] = [Date.parse(line.period_start!), Date.parse(line.period_end!)];
      const share = (amount: Decimal, at: number) =>
        amount
          .times(Math.min(Math.max(at, from), to) - from)
          .dividedBy(to - from)
          .toDecimalPlaces(2);
      return total(
        fields.map((field) =>
          share(dec(line[field]!), end)
            .minus(share(dec(line[field]!), start))
            .toFixed(),
        ),
      );
    };

    async function checkClosed(name: string, period: { start: number; end: number }): Promise<void> {
      const { total_revenue, revenue_parts } = await analytics(name, period);
      const lines = await linesOf(name);
      const over = (some: readonly InvoiceLine[], ...fields: Amount[]) =>
        total(some.map((line) => sharesIn(line, period, fields)));
      const drafts = lines.filter(({ invoice_status }) => invoice_status === 'DRAFT');
      expect(
        [total_revenue, revenue_parts.drafts, revenue_parts.open, revenue_parts.discounts, revenue_parts.credits],
        name,
      ).to.deep.equal([
        over(lines, 'amount'),
        over(drafts, 'amount'),
        '0',
        total([over(lines, 'line_item_discount'), over(lines, 'invoice_level_discount')]),
        over(lines, 'prepaid_credits_applied'),
      ]);
      met.drafts += drafts.length;
      met.discounts += Number(revenue_parts.discounts !== '0');
      met.credits += Number(revenue_parts.credits !== '0');
    }

    /** A quarter that is not over by the end of the period is in no preview yet, and earns its share all the same. */
    async function quarterOf(name: string, one: Drawn, previewed: readonly InvoiceLine[]) {
      if (!one.quarterly || !one.arrear || previewed.some(({ amount }) => amount === one.arrear)) return [];
      const begins = new Date((await world.subscription(name)).start_date);
      const ends = new Date(begins);
      ends.setUTCMonth(begins.getUTCMonth() + 3);
      return [{ amount: one.arrear, period_start: begins.toISOString(), period_end: ends.toISOString() }];
    }

    async function checkOpen(name: string, one: Drawn): Promise<void> {
      const period = await periodsOf(name);
      const { revenue_parts } = await analytics(name, period);
      const preview = await world.preview(name);
      const own = preview.line_items.filter(
        (line) => Date.parse(line.period_start!) < period.end && !line.parent_line_item_id,
      );
      const lines = [...own, ...(await quarterOf(name, one, own))];
      met.minimums += Number(revenue_parts.minimums !== '0');
      expect(total([revenue_parts.open, revenue_parts.minimums]), name).to.equal(
        total(lines.map((line) => sharesIn(line, period, ['amount']))),
      );
    }

    async function checkCut(name: string, period: { start: number; end: number }, cut: number): Promise<void> {
      const at = Math.min(period.start + cut, period.end - 1);
      const [whole, first, second] = await Promise.all(
        [period, { start: period.start, end: at }, { start: at, end: period.end }].map((one) => analytics(name, one)),
      );
      for (const part of ['usage', 'fixed', 'discounts'] as const)
        expect(total([first!.revenue_parts[part], second!.revenue_parts[part]]), `${part} of ${name}`).to.equal(
          whole!.revenue_parts[part],
        );
    }

    it('of a period that is over is what its invoices say; of one that is not, the preview, by name; parts add up', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(customer, { minLength: 4, maxLength: 4 }), async (drawn) => {
          year += 1;
          const begin = Date.parse(`${year}-01-01T00:00:00Z`);
          const living: { name: string; one: Drawn; closed: { start: number; end: number }[] }[] = [];
          // Each run has a minimum that usage does not reach, credits that pay for usage, and a discount, whatever is drawn.
          const [first, second, third, ...others] = drawn as [Drawn, Drawn, Drawn, ...Drawn[]];
          const early = { at: DAY, n: 30 };
          const customers: Drawn[] = [
            { ...first, commitment: 'subscription', used: [] },
            { ...second, credits: '5', used: [early, ...second.used] },
            { ...third, coupon: true, used: [early, ...third.used] },
            ...others,
          ];
          for (const one of customers.toSorted((a, b) => a.start - b.start)) {
            await world.on(iso(begin + one.start * DAY));
            const name = `customer ${++names}`;
            await subscribe(name, one);
            await world.send(
              one.used.map(({ at, n }) => world.event(name, 'sums', { n, at: iso(begin + one.start * DAY + at) })),
            );
            living.push({ name, one, closed: [] });
          }
          for (const month of ['02', '03']) {
            await world.on(`${year}-${month}-01`);
            await world.waitForPipeline();
            for (const { name, one, closed } of living) {
              await checkOpen(name, one);
              closed.push(await periodsOf(name));
            }
            const [{ name, one, closed }] = living as [(typeof living)[number]];
            await checkCut(name, closed.at(-1)!, one.cut);
          }
          await world.on(`${year}-04-20`);
          for (const { name, closed } of living) for (const period of closed) await checkClosed(name, period);
          await world.finalize();
          for (const { name, one, closed } of living) {
            const [first] = closed as [{ start: number; end: number }];
            if (one.late) await world.send([world.event(name, 'sums', { n: 9, at: iso(first.start + 1) })]);
          }
          await world.on(`${year}-05-20`);
          for (const { name, one, closed } of living)
            for (const period of closed) {
              await checkClosed(name, period);
              await checkCut(name, period, one.cut);
            }
          const range = { start: begin, end: begin + 90 * DAY };
          const everybody = await analytics(null, range);
          const each = await Promise.all(living.map(({ name }) => analytics(name, range)));
          expect(total(each.map(({ total_revenue }) => total_revenue))).to.equal(everybody.total_revenue);
          for (const { name } of living) await world.cancel(name);
        }),
        { numRuns: samples(2), endOnFailure: true },
      );
      for (const [what, count] of Object.entries(met)) expect(count, what).to.be.above(0);
    });
  });
});
