/** What a sync makes of the lines of one lineage of prices, and the law that it must keep. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { Price } from '../../../core/catalog/price/record.ts';
import { nextPeriodEnd, type Period } from '../../../core/foundation/time/period.ts';
import { type BilledItem, type BilledSubscription, planDueCharges } from '../../../core/rating/charges.ts';
import { computePlanSync, type SyncedLine } from '../../../core/subscriptions/plan-sync.ts';
import { samples } from '../../support/samples.ts';

const DAY = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00Z');
const on = (date: string) => Date.parse(`2026-${date}T00:00:00Z`);
const written = (at: number) => new Date(at).toISOString();
const shownDate = (date: string | null) => date?.slice(5, 10) ?? '';

type Terms = Pick<Price, 'billing_period' | 'invoice_cadence'> & { never?: boolean };
const QUARTERLY_ARREAR: Terms = { billing_period: 'QUARTERLY', invoice_cadence: 'ARREAR' };
const ADVANCE: Terms = { billing_period: 'MONTHLY', invoice_cadence: 'ADVANCE' };
const ARREAR: Terms = { billing_period: 'MONTHLY', invoice_cadence: 'ARREAR' };
const ONETIME: Terms = { billing_period: 'ONETIME', invoice_cadence: 'ADVANCE' };
const NEVER: Terms = { ...ARREAR, never: true };
const QUARTERLY_NEVER: Terms = { ...QUARTERLY_ARREAR, never: true };

const billed: BilledSubscription = {
  start_ms: START,
  end_ms: null,
  billing_anchor_ms: START,
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};

/** A monthly subscription from 1 January 2026 to a plan of one price, through its changes. */
class Life {
  readonly prices: Price[] = [];
  lines: SyncedLine[] = [];
  readonly charged: Period[] = [];
  readonly #seen = new Set<string>();
  current: Period;
  now = START;
  readonly #terms: Terms;
  readonly #status: 'active' | 'draft';

  constructor(terms: Terms, status: 'active' | 'draft' = 'active', lineStart = START) {
    this.#terms = terms;
    this.#status = status;
    this.current = { start: START, end: on('02-01') };
    this.#sell(null, lineStart === START ? null : lineStart);
    this.line(lineStart);
    this.#invoice('period_start');
  }

  line(
    start: number,
    quantity = '1',
    price = this.prices.at(-1)!,
    end: string | null = price.end_date ?? null,
    {
      period_anchor = null,
      ends_with_price = null,
    }: { period_anchor?: string | null; ends_with_price?: boolean | null } = {},
  ): void {
    const { id, billing_period, billing_period_count, invoice_cadence, type } = price;
    const line = { id: `line_${this.lines.length + 1}`, price_id: id, status: 'published', quantity, end_date: end };
    const terms = { billing_period, billing_period_count, invoice_cadence, price_type: type };
    const life = { start_date: written(start), period_anchor, ends_with_price };
    this.lines.push({ ...line, ...terms, ...life } as unknown as SyncedLine);
  }

  to(now: number): this {
    while (now >= this.current.end) {
      this.#invoice('period_end');
      this.current = { start: this.current.end, end: this.#endAfter(this.current.end) };
    }
    this.now = now;
    return this;
  }

  change(at = this.now): this {
    const last = this.prices.at(-1)!;
    this.prices[this.prices.length - 1] = { ...last, end_date: written(at) };
    this.#sell('price_1', at);
    return this;
  }

  sync(): this {
    const { ended, added } = computePlanSync({
      subscription: { currency: 'usd', subscription_status: this.#status },
      billed,
      current: this.current,
      plan_prices: this.prices,
      lines: this.lines,
      invoiced: new Set([...this.#seen].map((key) => key.split(' ')[0]!)),
      overridden: new Set(),
      reset_usage: new Map(this.#terms.never ? [['meter_1', 'NEVER' as const]] : []),
      now: this.now,
    });
    this.lines = this.lines.map((line) => {
      const end = ended.find((each) => each.line.id === line.id);
      const changes = {
        end_date: end?.end_date,
        ends_with_price: true,
        status: end?.is_void ? 'deleted' : line.status,
      };
      return end ? ({ ...line, ...changes } as SyncedLine) : line;
    });
    for (const { price, start_date, end_date, quantity, ...rest } of added)
      this.line(Date.parse(start_date), quantity ?? '1', price, end_date, rest);
    return this;
  }

  /** Another quantity from an instant on: the last line ends there by itself, and one that follows it begins. */
  reseat(at: number, quantity: string): this {
    const last = this.living.at(-1)!;
    if (at <= Date.parse(last.start_date)) return this;
    this.end(last, at);
    const price = this.prices.find(({ id }) => id === last.price_id);
    this.line(at, quantity, price, null);
    return this;
  }

  end(line: SyncedLine, at: number): this {
    const ended = { ...line, end_date: written(at), ends_with_price: false };
    this.lines = this.lines.map((each) => (each === line ? ended : each));
    return this;
  }

  get living(): SyncedLine[] {
    const lines = this.lines.filter(({ status }) => status === 'published');
    return lines.sort((a, b) => Date.parse(a.start_date) - Date.parse(b.start_date));
  }

  shown(): string[] {
    return this.living.map(
      ({ price_id, quantity, start_date, end_date }) =>
        `${price_id.slice(6)}×${quantity} ${shownDate(start_date)}..${shownDate(end_date ?? null)}`,
    );
  }

  #endAfter = (period_start: number) =>
    nextPeriodEnd({
      billing_anchor: START,
      billing_period: 'MONTHLY',
      billing_period_count: 1,
      timezone: 'UTC',
      period_start,
    });

  #invoice(reference: 'period_start' | 'period_end'): void {
    const items = this.living.map(
      (line): BilledItem => ({
        ...(line as unknown as BilledItem),
        start_ms: Date.parse(line.start_date),
        anchor_ms: line.period_anchor ? Date.parse(line.period_anchor) : null,
        end_ms: line.end_date ? Date.parse(line.end_date) : null,
        reset_usage: null,
      }),
    );
    for (const { item, service } of planDueCharges({ subscription: billed, items, period: this.current, reference })) {
      const key = `${item.id} ${service.start}`;
      if (!this.#seen.has(key)) this.charged.push(service);
      this.#seen.add(key);
    }
  }

  #sell(parent: string | null, start: number | null): void {
    const { never = false, ...terms } = this.#terms;
    const sequence = this.prices.length + 1;
    this.prices.push({
      id: `price_${sequence}`,
      sequence,
      parent_price_id: parent ?? '',
      status: 'published',
      currency: 'usd',
      type: never ? 'USAGE' : 'FIXED',
      meter_id: never ? 'meter_1' : null,
      billing_period_count: 1,
      min_quantity: null,
      start_date: start === null ? null : written(start),
      end_date: null,
      ...terms,
    } as Price);
  }
}

describe('the lines of a changed price', () => {
  it('periods of their own go on, however often the price changes', () => {
    const life = new Life(QUARTERLY_ARREAR).to(on('02-11')).change().sync().to(on('02-20')).change().sync();
    expect(life.shown()).to.deep.equal(['1×1 01-01..02-11', '2×1 02-11..02-20', '3×1 02-20..']);
    life.to(on('04-01'));
    const days = ({ start, end }: Period) => `${shownDate(written(start))}..${shownDate(written(end))}`;
    expect(life.charged.map(days).slice(-1)).to.deep.equal(['02-20..04-01']);
    life.to(on('05-10')).change().sync();
    expect(life.shown().slice(-2), 'a month of it is invoiced').to.deep.equal(['3×1 02-20..05-10', '4×1 05-10..']);
  });

  const rows: [string, () => Life, string[]][] = [
    [
      'arrears of a quarter end with the quarter when a month of it is invoiced',
      () => new Life(QUARTERLY_ARREAR).to(on('02-10')).change().to(on('03-05')).sync(),
      ['1×1 01-01..04-01', '2×1 04-01..'],
    ],
    [
      'arrears of a quarter that changed before it began, from its beginning on',
      () => new Life(QUARTERLY_ARREAR).to(on('03-10')).change().to(on('05-05')).sync(),
      ['1×1 01-01..04-01', '2×1 04-01..'],
    ],
    [
      'arrears of a quarter that change in the running month, at once',
      () => new Life(QUARTERLY_ARREAR).to(on('03-03')).change().to(on('03-05')).sync(),
      ['1×1 01-01..03-03', '2×1 03-03..'],
    ],
    ['what is paid once stays as it is', () => new Life(ONETIME).to(on('01-11')).change().sync(), ['1×1 01-01..']],
    [
      'what is paid once and is still to come is charged at the new price',
      () => new Life(ONETIME, 'active', on('03-01')).to(on('01-11')).change(on('02-10')).sync(),
      ['2×1 02-10..'],
    ],
    [
      'a meter that never resets changes with the period that is ahead',
      () => new Life(NEVER).to(on('01-15')).change(on('02-11')).sync(),
      ['1×1 01-01..03-01', '2×1 03-01..'],
    ],
    [
      'a meter that never resets changes with its own period',
      () => new Life(QUARTERLY_NEVER).to(on('01-15')).change(on('02-11')).sync(),
      ['1×1 01-01..04-01', '2×1 04-01..'],
    ],
    [
      'what is paid in advance and began in the running period leaves no gap',
      () => new Life(ADVANCE, 'active', on('01-20')).to(on('01-25')).change().sync(),
      ['1×1 01-20..02-01', '2×1 02-01..'],
    ],
    [
      'a price that was passed over stays so',
      () => new Life(NEVER).change(on('02-02')).change(on('02-03')).sync().sync(),
      ['1×1 01-01..03-01', '3×1 03-01..'],
    ],
    [
      'what never began gives its place to what comes next',
      () => new Life(QUARTERLY_NEVER).to(on('01-20')).change().sync().to(on('03-27')).change().to(on('05-02')).sync(),
      ['1×1 01-01..04-01', '3×1 04-01..'],
    ],
    [
      'two lines of a price have a successor each',
      () => {
        const life = new Life(ARREAR);
        life.line(START, '5');
        return life.to(on('01-11')).change().sync();
      },
      ['1×1 01-01..01-11', '1×5 01-01..01-11', '2×1 01-11..', '2×5 01-11..'],
    ],
    [
      'of two lines the one that has left has none',
      () => {
        const life = new Life(ARREAR);
        life.line(on('01-02'), '5', life.prices[0], written(on('01-05')));
        return life.to(on('01-11')).change().sync();
      },
      ['1×1 01-01..01-11', '1×5 01-02..01-05', '2×1 01-11..'],
    ],
    [
      'what was to end by itself ends then, at its own price and at those that come',
      () => {
        const life = new Life(ARREAR).to(on('01-06'));
        life.end(life.living[0]!, on('01-25'));
        return life.to(on('01-11')).change().sync().to(on('01-20')).change().sync();
      },
      ['1×1 01-01..01-11', '2×1 01-11..01-20', '3×1 01-20..01-25'],
    ],
    [
      'what ended by itself is followed by nothing when the price that comes next ends behind its end',
      () => {
        const life = new Life(ARREAR).to(on('01-06'));
        life.end(life.living[0]!, on('01-25'));
        return life.to(on('01-11')).change().sync().to(on('01-28')).change().sync();
      },
      ['1×1 01-01..01-11', '2×1 01-11..01-25'],
    ],
    [
      'another quantity that comes later takes the new price there',
      () => new Life(ARREAR).to(on('01-06')).reseat(on('01-25'), '3').to(on('01-11')).change().sync(),
      ['1×1 01-01..01-11', '2×1 01-11..01-25', '2×3 01-25..'],
    ],
    [
      'what ends by itself at the instant of a new price is not followed by it',
      () => new Life(ARREAR).to(on('01-11')).reseat(on('01-11'), '2').change().sync(),
      ['1×1 01-01..01-11', '2×2 01-11..'],
    ],
    [
      'a draft is as if it were made now',
      () => new Life(ARREAR, 'draft').to(on('01-11')).change().to(on('01-12')).sync(),
      ['2×1 01-01..'],
    ],
    [
      'a draft takes over what lies ahead',
      () => new Life(ARREAR, 'draft').to(on('01-11')).change(on('01-20')).sync(),
      ['1×1 01-01..01-20', '2×1 01-20..'],
    ],
  ];
  for (const [name, lived, lines] of rows) it(name, () => expect(lived().shown()).to.deep.equal(lines));

  type Step = { days: number; ahead: number; changes: boolean; syncs: boolean; reseats?: number | null };
  const step: fc.Arbitrary<Step> = fc.record({
    days: fc.integer({ min: 0, max: 45 }),
    ahead: fc.integer({ min: 0, max: 70 }),
    changes: fc.boolean(),
    syncs: fc.boolean(),
  });
  const live = (life: Life, steps: readonly Step[]) => {
    for (const [index, { days, ahead, changes, syncs, reseats = null }] of steps.entries()) {
      life.to(life.now + days * DAY);
      if (reseats !== null) life.reseat(life.now + reseats * DAY, `${index + 2}`);
      const at = life.now + ahead * DAY;
      if (changes && at > Date.parse(life.prices.at(-1)!.start_date ?? written(START))) life.change(at);
      if (syncs) life.sync();
    }
    return life.sync();
  };
  const laws: [string, Terms][] = Object.entries({
    ADVANCE,
    ARREAR,
    NEVER,
    QUARTERLY_ARREAR,
    QUARTERLY_NEVER,
    QUARTERLY_ADVANCE: { billing_period: 'QUARTERLY', invoice_cadence: 'ADVANCE' },
    WEEKLY_ARREAR: { billing_period: 'WEEKLY', invoice_cadence: 'ARREAR' },
  });
  for (const [name, terms] of laws) {
    it(`${name}: each instant has one line, and is charged once`, () => {
      const path = fc.array(step, { minLength: 1, maxLength: 6 });
      const law = fc.property(path, (steps) => {
        const life = live(new Life(terms), steps);
        expectTiled(life.living.map(({ start_date, end_date }) => [start_date, end_date ?? null]));
        expect(life.living.at(-1)!.end_date).to.equal(null);
        life.to(life.now + 200 * DAY);
        const charged = life.charged.sort((a, b) => a.start - b.start);
        expectTiled(charged.map(({ start, end }) => [written(start), written(end)]));
      });
      fc.assert(law, { numRuns: samples(50) });
    });
  }

  // A meter that never resets gets another price with its period alone, and no other quantity.
  for (const [name, terms] of laws.filter(([, { never }]) => !never)) {
    it(`${name}: whatever quantities it gets meanwhile, now or ahead, each instant has one line and the last quantity lasts`, () => {
      const reseats = fc.option(fc.integer({ min: 0, max: 60 }));
      const path = fc.array(fc.tuple(step, reseats), { minLength: 1, maxLength: 6 });
      const law = fc.property(path, (steps) => {
        const life = live(
          new Life(terms),
          steps.map(([one, reseats]) => ({ ...one, reseats })),
        );
        expectTiled(life.living.map(({ start_date, end_date }) => [start_date, end_date ?? null]));
        expect(life.living.at(-1)!.end_date).to.equal(null);
      });
      fc.assert(law, { numRuns: samples(50) });
    });
  }
});

function expectTiled(spans: [string, string | null][]): void {
  let at: string | null = written(START);
  for (const [start, end] of spans) {
    expect(start && written(Date.parse(start)), JSON.stringify(spans)).to.equal(at);
    at = end && written(Date.parse(end));
  }
}
