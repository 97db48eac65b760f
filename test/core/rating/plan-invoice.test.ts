import { expect } from 'chai';
import fc from 'fast-check';
import type { Coupon } from '../../../core/catalog/coupon/record.ts';
import type { PriceTerms } from '../../../core/catalog/pricing/charge.ts';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { minorUnits } from '../../../core/foundation/money.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { BilledSubscription, ReferencePoint } from '../../../core/rating/charges.ts';
import type { CouponInForce } from '../../../core/rating/discounts.ts';
import type { MeasuredUsage, PricedItem } from '../../../core/rating/line-amount.ts';
import {
  buildInvoicePlan,
  chargeKey,
  type InvoicePlanInput,
  listOpenCharges,
  planDiscounted,
  planLines,
} from '../../../core/rating/plan-invoice.ts';
import type { RateInForce } from '../../../core/rating/taxes.ts';
import { usageNet } from '../../../core/rating/usage-net.ts';
import { buildPrepaidWallet } from '../../support/lots.ts';

const at = (text: string) => Date.parse(`${text}T00:00:00Z`);
const january: Period = { start: at('2026-01-01'), end: at('2026-02-01') };

const subscription: BilledSubscription = {
  start_ms: at('2026-01-01'),
  end_ms: null,
  billing_anchor_ms: at('2026-01-01'),
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};

const flat = (amount: string, currency = 'usd'): PriceTerms => ({ billing_model: 'FLAT_FEE', currency, amount });
const tiered: PriceTerms = {
  billing_model: 'TIERED',
  currency: 'usd',
  tier_mode: 'SLAB',
  tiers: [
    { up_to: 1000, unit_amount: '0.02' },
    { up_to: 5000, unit_amount: '0.005' },
    { up_to: null, unit_amount: '0.01' },
  ],
};

function item(id: string, price: PriceTerms, changes: Partial<PricedItem> = {}): PricedItem {
  return {
    id,
    price,
    price_type: 'FIXED',
    invoice_cadence: 'ARREAR',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: subscription.start_ms,
    end_ms: null,
    reset_usage: null,
    quantity: new Decimal(1),
    display_name: id,
    meter_id: null,
    ...changes,
  };
}
const usageItem = (price: PriceTerms, id = 'usage') =>
  item(id, price, { price_type: 'USAGE', meter_id: 'meter_1', reset_usage: 'BILLING_PERIOD' });

function measured(quantity: string, changes: Partial<MeasuredUsage> = {}): MeasuredUsage {
  const high_water = { '0': '17' };
  return {
    quantity: new Decimal(quantity),
    event_count: 3,
    buckets: null,
    as_of: '2026-02-01T00:00:10.000Z',
    meter_version: 1,
    high_water,
    ...changes,
  };
}

function asked(items: readonly PricedItem[]): InvoicePlanInput<PricedItem> {
  return {
    subscription,
    items,
    period: january,
    reference: 'period_end',
    currency: 'usd',
    invoiced: new Set(),
    usage: new Map(),
    closed: [],
    recorded: [],
    partial: [],
    commitment: null,
    true_ups: [],
    coupons: [],
  };
}

function plan(items: readonly PricedItem[], given: Partial<InvoicePlanInput<PricedItem>> = {}) {
  const question = { ...asked(items), ...given };
  return buildInvoicePlan(planLines(question), question);
}

function percentOff(percent: number, line: string | null): CouponInForce {
  const terms = { id: 'off', type: 'percentage', amount_off: null, percentage_off: String(percent) };
  const open = { start_ms: null, end_ms: null, coupon_association_id: null, subscription_id: null };
  return { ...open, line, coupon: terms as unknown as Coupon };
}

const TAX: RateInForce = {
  rate: {
    id: 'tax',
    tax_rate_type: 'percentage',
    tax_behavior: 'exclusive',
    percentage_value: '19',
    fixed_value: null,
  },
  tax_association_id: null,
};
const usageOf = (answer: MeasuredUsage, id = 'usage', service = january) => new Map([[chargeKey(id, service), answer]]);

describe('plan an invoice', () => {
  describe('reference points', () => {
    const items = [
      usageItem(tiered),
      item('advance', flat('10'), { invoice_cadence: 'ADVANCE' }),
      item('arrear', flat('5')),
    ];
    const usage = usageOf(measured('500'));
    const february = { start: january.end, end: at('2026-03-01') };
    const key = { advance: chargeKey('advance', january), next: chargeKey('advance', february) };
    const arrears = [chargeKey('usage', january), chargeKey('arrear', january)];
    const cases: [ReferencePoint, string[], string, number][] = [
      ['period_start', [], '10', 1],
      ['period_end', [], '25', 3], // 500 × 0.02 + 10 + 5
      ['period_start', [key.advance], '0', 0],
      ['period_end', arrears, '10', 1],
      ['period_end', [...arrears, key.next], '0', 0],
      ['preview', [], '25', 3],
      ['cancel', [], '15', 2],
    ];
    for (const [reference, invoiced, subtotal, lines] of cases) {
      it(`${reference} with ${invoiced.length} charges invoiced already: ${subtotal}`, () => {
        const said = plan(items, { reference, usage, invoiced: new Set(invoiced) });
        expect(said.subtotal.toFixed()).to.equal(subtotal);
        expect(said.lines).to.have.length(lines);
      });
    }
  });

  describe('one line', () => {
    it('negative usage is shown and billed as nothing', () => {
      const [line] = plan([usageItem(flat('2'))], { usage: usageOf(measured('-7')) }).lines;
      expect(line!.amount.toFixed()).to.equal('0');
      expect(line!.quantity.toFixed()).to.equal('0');
      expect(line!.computed_from.quantity).to.equal('-7');
    });

    it('says what it was computed from', () => {
      const [line] = plan([usageItem(tiered)], { usage: usageOf(measured('1200')) }).lines;
      expect(line!.computed_from).to.deep.include({
        meter_id: 'meter_1',
        meter_version: '1',
        window_start: '2026-01-01T00:00:00.000Z',
        window_end: '2026-02-01T00:00:00.000Z',
        quantity: '1200',
        event_count: 3,
        high_water: { '0': '17' },
        breakdown: [
          { tier: 0, units: '1000', unit_amount: '0.02', flat_amount: '0', amount: '20' },
          { tier: 1, units: '200', unit_amount: '0.005', flat_amount: '0', amount: '1' },
        ],
      });
    });

    it('a bucketed meter prices each bucket and group on its own', () => {
      const buckets = [[new Decimal(600)], [new Decimal(600), new Decimal(-5)], []];
      const [line] = plan([usageItem(tiered)], { usage: usageOf(measured('1195', { buckets })) }).lines;
      expect(line!.amount.toFixed()).to.equal('24'); // 2 × 600 × 0.02: neither bucket reaches the second tier
      expect(line!.computed_from.breakdown).to.deep.equal([
        { tier: 0, units: '1200', unit_amount: '0.02', flat_amount: '0', amount: '24' },
      ]);
    });

    const packs = {
      billing_model: 'PACKAGE',
      currency: 'usd',
      amount: '2',
      transform_quantity: { divide_by: 3 },
    } as const;
    const slabs: PriceTerms = {
      ...tiered,
      tiers: [
        { up_to: 10, unit_amount: '2', flat_amount: '5' },
        { up_to: null, unit_amount: '1', flat_amount: '7' },
      ],
    };
    const bucketed: [string, PriceTerms, string[][], string][] = [
      ['nothing costs nothing, also its flat amount', slabs, [['0'], [], ['1']], '7'], // 2 + 5
      ['each bucket enters the tiers anew', slabs, [['1'], ['11']], '40'], // 7 + (20 + 5 + 1 + 7)
      ['a bucket below nothing takes nothing from the others', slabs, [['1'], ['-4']], '7'],
      ['each group in each bucket begins its own package', packs, [['1', '4'], [], ['0', '3']], '8'], // 1 + 2 + 0 + 1 packages
      ['no bucket at all', packs, [], '0'],
      ['the sum is rounded, not the buckets', flat('0.004'), [['1'], ['1']], '0.01'],
    ];
    for (const [name, price, values, amount] of bucketed)
      it(`of buckets: ${name}`, () => {
        const buckets = values.map((groups) => groups.map((value) => new Decimal(value)));
        const [line] = plan([usageItem(price)], { usage: usageOf(measured('1', { buckets })) }).lines;
        expect(line!.amount.toFixed()).to.equal(amount);
      });

    it('each line is rounded before the sum', () => {
      const items = ['0.005', '0.005', '0.004'].map((amount, index) => item(`${index}`, flat(amount)));
      expect(plan(items).subtotal.toFixed()).to.equal('0.02');
    });

    it('the first period that calendar billing shortens costs its share', () => {
      const short = { start: at('2026-01-15'), end: at('2026-02-01') };
      const calendar = { ...subscription, start_ms: short.start, billing_anchor_ms: short.end };
      const advance = item('advance', flat('31'), { invoice_cadence: 'ADVANCE', start_ms: short.start });
      const said = plan([advance], { subscription: calendar, period: short, reference: 'period_start' });
      expect(said.total.toFixed()).to.equal('17'); // 17 of 31 days
    });

    it('usage that was not read is an error, never a zero', () => {
      expect(() => plan([usageItem(flat('1'))])).to.throw('no usage was read');
    });

    it('a mean with more digits than a quantity can show is priced exactly', () => {
      const third = new Decimal(1).dividedBy(3);
      const [line] = plan([usageItem(flat('3'))], { usage: usageOf(measured('0', { quantity: third })) }).lines;
      expect(line!.quantity.toFixed()).to.equal('0.333333333333333333');
      expect(line!.amount.toFixed()).to.equal('1');
    });
  });

  describe('late events', () => {
    const december: Period = { start: at('2025-12-01'), end: at('2026-01-01') };
    const metered = usageItem(flat('1'));
    const closed = (billed: string, now: string) => ({
      item: metered,
      service: december,
      usage_window: december,
      billed_amount: new Decimal(billed),
      billed_quantity: new Decimal(billed),
      billed_event_count: 1,
      invoice_line_item_id: 'inv_line_1',
      measured: measured(now, { event_count: 4 }),
    });

    it('the difference is a line of its own, with the reason and the line that it corrects', () => {
      const said = plan([metered], { usage: usageOf(measured('10')), closed: [closed('5', '8')] });
      expect(said.subtotal.toFixed()).to.equal('13');
      const late = said.lines[1]!;
      expect(late.amount.toFixed()).to.equal('3');
      expect(late.quantity.toFixed()).to.equal('3');
      expect(late.service).to.deep.equal(december);
      expect(late.parent_line_item_id).to.equal('inv_line_1');
      expect(late.computed_from.event_count).to.equal(4);
      expect(late.computed_from.reason).to.match(/^late_events: 3 events/);
    });

    it('what is given back lowers the invoice to nothing at most; the rest stays open', () => {
      const said = plan([metered], { usage: usageOf(measured('10')), closed: [closed('50', '20')] });
      expect(said.subtotal.toFixed()).to.equal('0');
      expect(said.lines[1]!.amount.toFixed()).to.equal('-10');
      expect(said.lines[1]!.computed_from.event_count).to.equal(1); // so that the next invoice looks again
      const next = plan([metered], { usage: usageOf(measured('100')), closed: [closed('40', '20')] });
      expect(next.subtotal.toFixed()).to.equal('80');
    });

    it('no difference, no line', () => {
      expect(plan([metered], { usage: usageOf(measured('1')), closed: [closed('8', '8')] }).lines).to.have.length(1);
    });
  });

  describe('laws', () => {
    const money = fc.integer({ min: 0, max: 10_000_000 }).map((n) => new Decimal(n).dividedBy(100_000).toFixed());
    const quantity = fc.integer({ min: -1000, max: 1_000_000 }).map((n) => new Decimal(n).dividedBy(1000).toFixed());
    const currency = fc.constantFrom('usd', 'jpy', 'kwd');

    it('totals are the sum of the lines, each rounded first', () => {
      fc.assert(
        fc.property(currency, fc.array(fc.tuple(money, quantity), { maxLength: 8 }), (code, rows) => {
          const items = rows.map(([amount], index) => usageItem(flat(amount, code), `item_${index}`));
          const usage = new Map(rows.map(([, q], index) => [chargeKey(`item_${index}`, january), measured(q)]));
          const said = plan(items, { currency: code, usage });
          expect(said.subtotal.eq(sumDecimals(said.lines.map((line) => line.amount)))).to.equal(true);
          expect(said.total.eq(said.subtotal)).to.equal(true);
          for (const line of said.lines) expect(line.amount.decimalPlaces()).to.be.at.most(minorUnits(code));
        }),
      );
    });

    it('what usage comes to after coupons is the same without credits and taxes, and where its charges are known', () => {
      let discounted = 0;
      const rows = fc.array(fc.tuple(money, quantity), { minLength: 1, maxLength: 5 });
      const off = fc.integer({ min: 0, max: 100 });
      fc.assert(
        fc.property(rows, off, fc.option(fc.nat(4), { nil: null }), (each, percent, of) => {
          const items = each.map(([amount], index) => usageItem(flat(amount), `item_${index}`));
          const question = {
            ...asked([...items, item('fixed', flat('7'))]),
            usage: new Map(each.map(([, q], index) => [chargeKey(`item_${index}`, january), measured(q)])),
            coupons: [percentOff(percent, of === null ? null : `item_${of}`)],
          };
          const final = { rates: [TAX], prepaid: [buildPrepaidWallet({ balance: new Decimal('5') })] };
          const net = usageNet(buildInvoicePlan(planLines(question), { ...question, ...final })).toFixed();
          expect(usageNet(planDiscounted(question)).toFixed()).to.equal(net);
          const open = listOpenCharges(question);
          expect(usageNet(planDiscounted(question, open)).toFixed()).to.equal(net);
          if (net !== usageNet(buildInvoicePlan(planLines(question), { ...question, ...final, coupons: [] })).toFixed())
            discounted++;
        }),
      );
      expect(discounted).to.be.above(10);
    });

    it('the parts of a period add up to the whole, wherever it is cut', () => {
      const cuts = fc.uniqueArray(fc.integer({ min: 1, max: 31 * 86_400 - 1 }), { minLength: 1, maxLength: 5 });
      fc.assert(
        fc.property(money, cuts, (amount, seconds) => {
          const ends = seconds.toSorted((a, b) => a - b).map((second) => january.start + second * 1000);
          const parts = [january.start, ...ends].map((start_ms, nth) =>
            item(`part ${nth}`, flat(amount), { start_ms, end_ms: ends[nth] ?? null }),
          );
          const whole = plan([item('whole', flat(amount))]).subtotal;
          expect(plan(parts).subtotal.toFixed()).to.equal(whole.toFixed());
        }),
      );
    });

    it('late events leave the customer with what one invoice would have said, however they come in', () => {
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 0, max: 4000 }), { minLength: 1, maxLength: 6 }), (arrivals) => {
          const metered = usageItem(tiered);
          let known = 0;
          let billed = new Decimal(0);
          for (const [index, late] of arrivals.entries()) {
            known += late;
            const now = measured(String(known), { event_count: index + 1 });
            const charge = { item: metered, service: january, usage_window: january, measured: now };
            const recorded = { billed_amount: billed, billed_quantity: new Decimal(0), billed_event_count: index };
            const said = plan([], { closed: [{ ...charge, ...recorded, invoice_line_item_id: 'inv_line_1' }] });
            billed = billed.plus(said.subtotal);
          }
          const once = plan([metered], { usage: usageOf(measured(String(known))) });
          expect(billed.toFixed()).to.equal(once.subtotal.toFixed());
        }),
      );
    });
  });
});
