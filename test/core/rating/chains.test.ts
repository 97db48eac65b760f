import { expect } from 'chai';
import fc from 'fast-check';
import type { PriceTerms } from '../../../core/catalog/pricing/charge.ts';
import { termsKey } from '../../../core/catalog/pricing/equal-terms.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { type WindowSize, windowAt } from '../../../core/foundation/time/window.ts';
import { AGGREGATIONS, type AggregationType } from '../../../core/metering/aggregations/index.ts';
import type { MeasuredAllowance } from '../../../core/rating/allowances/allowance.ts';
import { computeGaps } from '../../../core/rating/chains/chain.ts';
import { chainCosts } from '../../../core/rating/chains/chain-costs.ts';
import { usageToRead } from '../../../core/rating/chains/charge-chains.ts';
import { integrateLevel, levelReadings } from '../../../core/rating/chains/levels.ts';
import { type BilledSubscription, planDueCharges } from '../../../core/rating/charges.ts';
import { applyCoupons, type CouponInForce } from '../../../core/rating/discounts.ts';
import type { MeasuredUsage, PlannedLine, PricedItem } from '../../../core/rating/line-amount.ts';
import { planLines, planThreshold, planThresholdCharges } from '../../../core/rating/plan-invoice.ts';
import { samples } from '../../support/samples.ts';

const at = (text: string) => Date.parse(text.length > 10 ? `${text}:00Z` : `${text}T00:00:00Z`);
const JANUARY: Period = { start: at('2026-01-01'), end: at('2026-02-01') };

const subscription: BilledSubscription = {
  start_ms: JANUARY.start,
  end_ms: null,
  billing_anchor_ms: JANUARY.start,
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};

type Used = { readonly at: number; readonly value: Decimal };
type Meter = { readonly type: AggregationType; readonly bucket_size?: WindowSize; readonly never?: boolean };
type Line = { readonly price: PriceTerms; readonly start: number; readonly end?: number | null };
type Story = {
  readonly meter: Meter;
  readonly lines: readonly Line[];
  readonly used: readonly Used[];
  readonly subscribed?: Partial<BilledSubscription>;
  /** Free in the billing period. */
  readonly limit?: Decimal | null;
  readonly period?: Period;
  readonly now?: number;
};

const ONE = new Decimal(1);
const GRID = { timezone: 'UTC', billing_anchor: JANUARY.start };

/** Plainly, from the events of a window. */
function aggregate(type: AggregationType, used: readonly Used[], { end }: Period): Decimal {
  const values = used.map(({ value }) => value);
  if (values.length === 0) return ZERO;
  switch (type) {
    case 'COUNT':
      return new Decimal(values.length);
    case 'SUM':
      return sumDecimals(values);
    case 'SUM_WITH_MULTIPLIER':
      return sumDecimals(values).times(2);
    case 'AVG':
      return sumDecimals(values).dividedBy(values.length).toDecimalPlaces(24);
    case 'COUNT_UNIQUE':
      return new Decimal(new Set(values.map((value) => value.toFixed())).size);
    case 'LATEST':
      return [...used].sort((a, b) => a.at - b.at).at(-1)!.value;
    case 'MAX':
      return Decimal.max(...values);
    case 'WEIGHTED_SUM':
      return sumDecimals(used.map((one) => one.value.times(end - one.at).times(1000)));
  }
}

function reader({ type, bucket_size }: Meter, used: readonly Used[]) {
  return (window: Period, gaps: readonly Period[] = []): MeasuredUsage => {
    const isIn = ({ at: when }: Used) =>
      when >= window.start && when < window.end && !gaps.some((gap) => when >= gap.start && when < gap.end);
    const inside = used.filter(isIn);
    const read = { event_count: inside.length, as_of: '2026-03-01T00:00:00Z', high_water: {}, meter_version: 1 };
    if (type === 'WEIGHTED_SUM')
      return { ...read, quantity: ZERO, buckets: null, integral: aggregate(type, inside, window) };
    if (!bucket_size) return { ...read, quantity: aggregate(type, inside, window), buckets: null };
    const byBucket = new Map<number, Used[]>();
    for (const one of inside) {
      const { start } = windowAt(one.at, bucket_size, GRID);
      byBucket.set(start, [...(byBucket.get(start) ?? []), one]);
    }
    const bucket_starts = [...byBucket.keys()].sort((a, b) => a - b);
    const buckets = bucket_starts.map((start) => [aggregate(type, byBucket.get(start)!, window)]);
    return { ...read, quantity: sumDecimals(buckets.flat()), buckets, bucket_starts };
  };
}

function itemsOf({ meter, lines }: Story): PricedItem[] {
  const rule = AGGREGATIONS[meter.type].chain_rule;
  return lines.map(({ price, start, end }, index) => ({
    id: `line_${index}`,
    price,
    price_type: 'USAGE',
    invoice_cadence: 'ARREAR',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: start,
    end_ms: end === undefined ? (lines[index + 1]?.start ?? null) : end,
    reset_usage: meter.never ? 'NEVER' : 'BILLING_PERIOD',
    quantity: new Decimal(1),
    display_name: `line ${index}`,
    meter_id: 'meter_1',
    chain_terms: {
      rule,
      key: 'plan meter_1',
      follows_id: null,
      windows: meter.bucket_size ? { size: meter.bucket_size, ...GRID } : null,
    },
  }));
}

function planned(story: Story): readonly PlannedLine[] {
  const { meter, used, limit = null, period = JANUARY, now } = story;
  const billed = { ...subscription, ...story.subscribed };
  const items = itemsOf(story);
  const read = reader(meter, used);
  const asked = { subscription: billed, items, period, reference: 'preview' as const, invoiced: new Set<string>() };
  const charges =
    now === undefined ? planDueCharges(asked) : planThresholdCharges({ ...asked, period: { ...period, end: now } });
  const usage = new Map<string, MeasuredUsage>();
  for (const { item, window, service, chain, keys } of usageToRead(charges)) {
    const isLevel = chain?.rule === 'integral';
    const time = { start: service.start, end: Math.min(service.end, chain?.measured_until ?? service.end) };
    const measure = (of: Period): MeasuredUsage => {
      if (!isLevel) return read(of, chain?.rule === 'shared' ? computeGaps(chain) : []);
      const readings = levelReadings(of, item, billed);
      const answers = readings.map((one) => read(one.window));
      return { ...answers[0]!, ...integrateLevel(readings, answers) };
    };
    const measured = measure(isLevel ? time : window);
    const counted = isLevel ? time : window;
    const used_in = (start: number, end: number) => (start < end ? measure({ start, end }).quantity : ZERO);
    const allowances: MeasuredAllowance[] =
      limit === null
        ? []
        : [
            {
              limit,
              windows: [
                {
                  start: period.start,
                  end: counted.end,
                  before: used_in(period.start, counted.start),
                  after: used_in(period.start, counted.end),
                },
              ],
            },
          ];
    for (const key of keys) usage.set(key, { ...measured, allowances });
  }
  const before = { closed: [], recorded: [], partial: [], commitment: null, true_ups: [], coupons: [] };
  const question = { ...asked, ...before, currency: 'usd', usage };
  return now === undefined
    ? planLines(question)
    : planThreshold({ ...question, period: { ...period, end: now } }).lines;
}

const amounts = (story: Story) => planned(story).map(({ amount }) => amount.toFixed());
const total = (story: Story) => sumDecimals(planned(story).map(({ amount }) => amount)).toFixed();

const flat = (amount: string): PriceTerms => ({ billing_model: 'FLAT_FEE', currency: 'usd', amount });
const slab = (...tiers: [number | null, string, string?][]): PriceTerms => ({
  billing_model: 'TIERED',
  tier_mode: 'SLAB',
  currency: 'usd',
  tiers: tiers.map(([up_to, unit_amount, flat_amount = null]) => ({ up_to, unit_amount, flat_amount })),
});
const volume = (...tiers: [number | null, string, string?][]): PriceTerms => ({
  ...slab(...tiers),
  tier_mode: 'VOLUME',
});
const pack = (divide_by: number, amount: string, round: 'up' | 'down' = 'up'): PriceTerms => ({
  billing_model: 'PACKAGE',
  currency: 'usd',
  amount,
  transform_quantity: { divide_by, round },
});

const value = (n: number | string) => new Decimal(String(n));
const used = (...events: [string, number | string][]): Used[] =>
  events.map(([when, n]) => ({ at: at(when), value: value(n) }));
const daily = (n: number): Used[] =>
  Array.from({ length: 31 }, (_, day) => ({ at: JANUARY.start + day * 86_400_000 + 1, value: value(n) }));
const two = (before: PriceTerms, after: PriceTerms, when = '2026-01-16'): Line[] => [
  { price: before, start: JANUARY.start },
  { price: after, start: at(when) },
];
const alone = (price: PriceTerms): Line[] => [{ price, start: JANUARY.start }];

describe('usage over a change', () => {
  const level = { type: 'WEIGHTED_SUM' } as const;
  const users = { type: 'COUNT_UNIQUE' } as const;
  const peak = { type: 'MAX' } as const;
  const dailyPeak = { type: 'MAX', bucket_size: 'DAY' } as const;
  const sum = { type: 'SUM' } as const;
  const monthly = { type: 'SUM', bucket_size: 'MONTH' } as const;
  const tenAllMonth = used(['2026-01-01', 10]);
  const gone = used(['2026-01-01', 10], ['2026-01-20', -10]);
  const tenCents = slab([1000, '0.1'], [null, '0.08']);
  const cancelledOn = (when: string) => ({ end_ms: at(when) });

  const rows: [string, Story, string[]][] = [
    [
      'WEIGHTED_SUM of 10, $31 → $62: 150 + 320',
      { meter: level, lines: two(flat('31'), flat('62')), used: tenAllMonth },
      ['150', '320'],
    ],
    [
      'equal prices, gone on the 20th: 190',
      { meter: level, lines: two(flat('31'), flat('31.0')), used: gone },
      ['150', '40'],
    ],
    [
      '10 GB, cancelled on the 16th: 150',
      { meter: level, lines: alone(flat('31')), used: tenAllMonth, subscribed: cancelledOn('2026-01-16') },
      ['150'],
    ],
    [
      'of a line from the 16th the level that stands counts from there: 160',
      { meter: level, lines: [{ price: flat('31'), start: at('2026-01-16') }], used: tenAllMonth },
      ['160'],
    ],
    [
      'a run whose part is below 0 has no share: 15 of 15 at $31, whole 10 × 15/31 − 5 × 16/31',
      { meter: level, lines: two(flat('31'), flat('62')), used: used(['2026-01-01', 10], ['2026-01-16', -15]) },
      ['70', '0'],
    ],
    [
      'COUNT_UNIQUE of one user in both halves, $10 → $11: 4.84 + 5.68',
      { meter: users, lines: two(flat('10'), flat('11')), used: used(['2026-01-02', 1], ['2026-01-20', 1]) },
      ['4.84', '5.68'],
    ],
    [
      'MAX 10, $10 → $1 on the 16th: 53.55',
      { meter: peak, lines: two(flat('10'), flat('1')), used: used(['2026-01-05', 10]) },
      ['48.39', '5.16'],
    ],
    [
      'and cancelled on the 20th still',
      {
        meter: peak,
        lines: two(flat('10'), flat('1')),
        used: used(['2026-01-05', 10]),
        subscribed: cancelledOn('2026-01-20'),
      },
      ['48.39', '5.16'],
    ],
    [
      'an add-on from the 16th whose own peak is 10: 100',
      {
        meter: peak,
        lines: [{ price: flat('10'), start: at('2026-01-16') }],
        used: used(['2026-01-05', 99], ['2026-01-20', 10]),
      },
      ['100'],
    ],
    [
      'MAX 10 by DAY, changed at noon to an equal price: 310',
      {
        meter: dailyPeak,
        lines: two(flat('1'), flat('1'), '2026-01-16T12:00'),
        used: [...daily(10), ...used(['2026-01-16T13:00', 10])],
      },
      ['155', '155'],
    ],
    [
      'MAX 10 by DAY, $1 → $2 at noon of the 16th: 150 + 5 and 10 + 300',
      {
        meter: dailyPeak,
        lines: two(flat('1'), flat('2'), '2026-01-16T12:00'),
        used: [...daily(10), ...used(['2026-01-16T13:00', 10])],
      },
      ['155', '310'],
    ],
    [
      'SUM by MONTH, 1 ct → 2 ct, 31,000 before: 310',
      { meter: monthly, lines: two(flat('0.01'), flat('0.02')), used: used(['2026-01-10', 31000]) },
      ['310', '0'],
    ],
    [
      '10 at $1, then −5 at $2: 5',
      { meter: sum, lines: two(flat('1'), flat('2')), used: used(['2026-01-10', 10], ['2026-01-20', -5]) },
      ['10', '-5'],
    ],
    [
      '−5 at $1, then 10 at $2: taken off later ones',
      { meter: sum, lines: two(flat('1'), flat('2')), used: used(['2026-01-10', -5], ['2026-01-20', 10]) },
      ['0', '10'],
    ],
    [
      'SUM over two cuts at equal terms: tiers go on',
      {
        meter: monthly,
        lines: [
          { price: tenCents, start: JANUARY.start },
          { price: { ...tenCents, tiers: [...tenCents.tiers!].reverse() }, start: at('2026-01-11') },
          { price: tenCents, start: at('2026-01-21') },
        ],
        used: used(['2026-01-05', 500], ['2026-01-15', 400], ['2026-01-25', '108.5']),
      },
      ['50', '40', '10.68'],
    ],
    [
      'A, B, A: tiers begin again',
      {
        meter: sum,
        lines: [
          { price: tenCents, start: JANUARY.start },
          { price: flat('1'), start: at('2026-01-11') },
          { price: tenCents, start: at('2026-01-21') },
        ],
        used: used(['2026-01-05', 1000], ['2026-01-25', 1000]),
      },
      ['100', '0', '100'],
    ],
    [
      'packages go on: 150 + 30 units in packages of 100',
      {
        meter: sum,
        lines: two(pack(100, '5'), pack(100, '5.00')),
        used: used(['2026-01-05', 150], ['2026-01-20', 30]),
      },
      ['10', '0'],
    ],
    [
      'VOLUME that became cheaper: a part below 0',
      {
        meter: sum,
        lines: two(volume([100, '1'], [null, '0.5']), volume([100, '1'], [null, '0.5'])),
        used: used(['2026-01-05', 100], ['2026-01-20', 1]),
      },
      ['100', '-49.5'],
    ],
    [
      'a gap is charged to nobody, and its time to the line before',
      {
        meter: peak,
        lines: [
          { price: flat('31'), start: JANUARY.start, end: at('2026-01-10') },
          { price: flat('62'), start: at('2026-01-16') },
        ],
        used: used(['2026-01-05', 1], ['2026-01-12', 50]),
      },
      ['15', '32'],
    ],
    [
      'what is free does not begin again: 6 of 10 units, then 5 more',
      {
        meter: sum,
        lines: two(flat('1'), flat('2')),
        used: used(['2026-01-05', 6], ['2026-01-20', 5]),
        limit: value(8),
      },
      ['0', '6'],
    ],
  ];
  for (const [name, story, expected] of rows) it(name, () => expect(amounts(story)).to.deep.equal(expected));

  it('the quantity of a level is in whole months: 10 GB for 15 of 31 days', () => {
    const story = { meter: level, lines: alone(flat('31')), used: tenAllMonth, subscribed: cancelledOn('2026-01-16') };
    expect(planned(story).map(({ quantity }) => quantity.toFixed())).to.deep.equal(['4.838709677419354839']);
  });

  it('a level that never resets has an integral of its own in each period: 310 every month', () => {
    const story = { meter: { ...level, never: true }, lines: alone(flat('31')), used: used(['2026-02-01', 10]) };
    expect(total(story)).to.equal('0');
    for (const month of ['02', '03', '04'])
      expect(
        total({ ...story, period: { start: at(`2026-${month}-01`), end: at(`2026-0${Number(month) + 1}-01`) } }),
      ).to.equal('310');
  });

  it('a short first period is measured against the whole one', () => {
    const start_ms = at('2026-01-16');
    const period = { start: start_ms, end: JANUARY.end };
    const short = {
      lines: [{ price: flat('31'), start: start_ms }],
      subscribed: { start_ms, billing_anchor_ms: JANUARY.end },
      period,
    };
    expect(total({ ...short, meter: level, used: used(['2026-01-16', 10]) })).to.equal('160');
    expect(total({ ...short, meter: peak, used: used(['2026-01-16', 10]) })).to.equal('310');
  });

  const meters: Meter[] = [
    { type: 'COUNT' },
    { type: 'SUM' },
    { type: 'SUM', bucket_size: 'DAY' },
    { type: 'SUM', bucket_size: 'WEEK' },
    { type: 'SUM', bucket_size: 'MONTH' },
    { type: 'SUM_WITH_MULTIPLIER' },
    { type: 'AVG' },
    { type: 'COUNT_UNIQUE' },
    { type: 'LATEST' },
    { type: 'MAX' },
    { type: 'MAX', bucket_size: 'HOUR' },
    { type: 'MAX', bucket_size: 'DAY' },
    { type: 'WEIGHTED_SUM' },
    { type: 'WEIGHTED_SUM', never: true },
  ];
  const prices = fc.constantFrom(
    flat('0.333'),
    flat('31'),
    pack(7, '2.5'),
    pack(7, '2.5', 'down'),
    slab([5, '1', '3'], [20, '0.335'], [null, '0.1']),
    volume([5, '1', '3'], [20, '0.335'], [null, '0.1']),
  );
  const minute = fc.integer({ min: 0, max: 31 * 24 * 60 - 1 }).map((minutes) => JANUARY.start + minutes * 60_000);
  const history = fc.array(
    fc.record({ at: minute, value: fc.integer({ min: -40, max: 120 }).map((n) => new Decimal(n).dividedBy(4)) }),
    { maxLength: 12 },
  );
  const cuts = fc.uniqueArray(minute, { maxLength: 4 }).map((all) => [...all].sort((a, b) => a - b));
  const limits = fc.option(fc.integer({ min: 0, max: 30 }).map((n) => new Decimal(n)));
  const cutAt = (price: PriceTerms, places: readonly number[]): Line[] =>
    [JANUARY.start, ...places.filter((place) => place > JANUARY.start)].map((start) => ({ price, start }));

  for (const meter of meters) {
    const name = [meter.type, meter.bucket_size, meter.never && 'NEVER'].filter(Boolean).join(' ');
    it(`${name}: a change between equal prices changes no total, wherever the period is cut`, () => {
      fc.assert(
        fc.property(prices, history, cuts, limits, fc.option(minute), (price, events, places, limit, end) => {
          const subscribed = end === null || end <= JANUARY.start ? {} : { end_ms: end };
          const story = { meter, used: events, limit, subscribed };
          expect(total({ ...story, lines: cutAt(price, places) })).to.equal(total({ ...story, lines: alone(price) }));
        }),
        { numRuns: samples(1_000) },
      );
    });

    // A level grows with time.
    if (meter.type === 'WEIGHTED_SUM') continue;
    it(`${name}: a running amount does not change by the mere passing of time`, () => {
      const several = fc.array(prices, { minLength: 5, maxLength: 5 });
      fc.assert(
        fc.property(several, history, cuts, minute, minute, (those, events, places, one, other) => {
          const [now, later] = [Math.min(one, other) + 60_000, Math.max(one, other) + 120_000];
          const lines = cutAt(flat('1'), places).map((line, index) => ({ ...line, price: those[index]! }));
          const story = { meter, lines, used: events.filter((event) => event.at < now) };
          const running = total({ ...story, now });
          expect(total({ ...story, now: later })).to.equal(running);
          expect(running).to.equal(total(story));
        }),
        { numRuns: samples(1_000) },
      );
    });
  }

  it('a coupon of a line takes off a chain what it would take off the whole', () => {
    const lines = (...amounts: string[]) =>
      amounts.map((amount) => ({ amount: new Decimal(amount), key: 'line', charged_ms: null, chain: 'line_0' }));
    const taken = (coupon: object, ...amounts: string[]) => {
      const by = {
        coupon,
        coupon_association_id: null,
        subscription_id: null,
        line: 'line',
        start_ms: null,
        end_ms: null,
      };
      const discounts = applyCoupons(lines(...amounts), [by as CouponInForce], 'usd');
      return discounts.lines.map(({ line_item_discount }) => line_item_discount.toFixed());
    };
    const percent = { type: 'percentage', percentage_off: '10' };
    expect(taken(percent, '100', '-49.5')).to.deep.equal(['5.05', '0']);
    expect(taken(percent, '10', '-5', '20')).to.deep.equal(['1', '0', '1.5']);
    // 0.008 and 0.01 in all, which is 0.01: each by itself would be 0 and 0.
    expect(taken(percent, '0.04', '0.04')).to.deep.equal(['0', '0.01']);
    expect(taken(percent, '0.05', '0.05')).to.deep.equal(['0.01', '0']);
    expect(taken({ type: 'fixed', amount_off: '50' }, '10', '-5')).to.deep.equal(['5', '0']);
  });

  it('prices what a line changes alone, however many lines and buckets come before it', () => {
    const DAY_MS = 86_400_000;
    let priced = 0;
    const lines = Array.from({ length: 310 }, (_, index) => {
      const price = {
        currency: 'usd',
        amount: index % 2 === 0 ? '1' : '2',
        get billing_model() {
          priced++;
          return 'FLAT_FEE' as const;
        },
      } as PriceTerms;
      const start = JANUARY.start + (index * DAY_MS) / 10;
      return { item: { id: String(index), price }, service: { start, end: start + DAY_MS / 10 } };
    });
    const measured = new Map(
      lines.map((line) => [
        line.item.id,
        { quantity: ONE, buckets: [[ONE]], bucket_starts: [line.service.start], integral: undefined },
      ]),
    );
    const period = { whole: JANUARY, level_since: JANUARY.start, begins: JANUARY.start };
    for (const size of ['DAY', 'MONTH'] as const) {
      priced = 0;
      const chain = { rule: 'additive', lines, ...period, windows: { ...GRID, size } } as const;
      const costs = chainCosts(chain, ({ item }) => measured.get(item.id)!);
      expect(costs.at(-1)!.until_end.toFixed()).to.equal('465');
      expect(priced, size).to.be.at.most(lines.length * 10);
    }
  });

  it('terms are equal as numbers', () => {
    expect(termsKey(flat('1'))).to.equal(termsKey({ ...flat('1.00'), tiers: [] }));
    expect(termsKey(tenCents)).to.equal(termsKey({ ...tenCents, tiers: [...tenCents.tiers!].reverse() }));
    expect(termsKey(pack(7, '1'))).to.equal(termsKey({ ...pack(7, '1.0'), transform_quantity: { divide_by: 7 } }));
    expect(termsKey(pack(7, '1'))).not.to.equal(termsKey(pack(7, '1', 'down')));
    expect(termsKey(tenCents)).not.to.equal(termsKey({ ...tenCents, tier_mode: 'VOLUME' }));
  });
});
