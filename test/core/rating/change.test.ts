/** What changes inside a period come to, whatever is changed and in whichever order. */
import { expect } from 'chai';
import fc from 'fast-check';
import type { PriceTerms } from '../../../core/catalog/pricing/charge.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import type { BilledItemLine } from '../../../core/rating/billed-before.ts';
import { type EndingLineItem, planChangeLines } from '../../../core/rating/change.ts';
import type { BilledSubscription } from '../../../core/rating/charges.ts';
import type { PricedItem } from '../../../core/rating/line-amount.ts';
import { toBilledLine } from '../../support/billed-lines.ts';

const at = (text: string) => Date.parse(`${text}T00:00:00Z`);
const january = { start: at('2026-01-01'), end: at('2026-02-01') };
const subscription: BilledSubscription = {
  start_ms: january.start,
  end_ms: null,
  billing_anchor_ms: january.start,
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  timezone: 'UTC',
};
const running = { subscription, current: january, currency: 'usd' };
const flat = (amount: string): PriceTerms => ({ billing_model: 'FLAT_FEE', currency: 'usd', amount });
const slabs: PriceTerms = {
  billing_model: 'TIERED',
  currency: 'usd',
  tier_mode: 'SLAB',
  tiers: [
    { up_to: 10, unit_amount: '7.77', flat_amount: '3' },
    { up_to: null, unit_amount: '5.01' },
  ],
};

function seat(quantity: number | string, price: PriceTerms, changes: Partial<PricedItem> = {}): PricedItem {
  return {
    id: 'seat',
    price,
    quantity: new Decimal(quantity),
    price_type: 'FIXED',
    invoice_cadence: 'ADVANCE',
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: january.start,
    end_ms: null,
    reset_usage: null,
    display_name: 'seat',
    meter_id: null,
    ...changes,
  };
}

const total = (lines: readonly { amount: Decimal }[]) => sumDecimals(lines.map(({ amount }) => amount));

/** What a line costs for its time in January, as its opening invoice or a change would charge it. */
const begin = (item: PricedItem) => planChangeLines({ ...running, endings: [], beginnings: [item] });
const charged = (item: PricedItem) => total(begin(item));
const billed = (item: PricedItem) => begin(item).map(toBilledLine);
const ends = (item: PricedItem, instant: number, before: readonly BilledItemLine[] = billed(item)): EndingLineItem => ({
  item,
  at: instant,
  billed_lines: before,
});
const net = (endings: EndingLineItem[], beginnings: PricedItem[]) =>
  total(planChangeLines({ ...running, endings, beginnings }));

describe('changes inside a period', () => {
  const cases: [string, EndingLineItem[], PricedItem[], string][] = [
    ['tiers: the computed charge is prorated', [ends(seat(10, slabs), at('2026-01-16'))], [], '-41.65'], // 80.70 × 16/31
    ['nothing was billed', [ends(seat(1, flat('50')), at('2026-01-16'), [])], [], '0'],
    ['in arrears', [ends(seat(1, flat('50'), { invoice_cadence: 'ARREAR' }), at('2026-01-16'))], [], '0'],
    ['what is charged once', [ends(seat(1, flat('50'), { billing_period: 'ONETIME' }), at('2026-01-16'))], [], '0'],
    ['what begins once', [], [seat(1, flat('50'), { billing_period: 'ONETIME', start_ms: at('2026-01-16') })], '50'],
    ['what begins with the next period', [], [seat(1, flat('50'), { start_ms: january.end })], '0'],
    ['at its end', [ends(seat(1, flat('50')), january.end)], [], '0'],
  ];
  for (const [what, endings, beginnings, expected] of cases)
    it(`${what}: ${expected}`, () => expect(net(endings, beginnings).toFixed()).to.equal(expected));

  it('a yearly line on a monthly subscription is settled to the end of its year', () => {
    const year = seat(1, flat('365'), { billing_period: 'ANNUAL' });
    const next = { ...year, quantity: new Decimal(2), start_ms: at('2026-01-11'), anchor_ms: january.start };
    expect(net([ends(year, at('2026-01-11'))], [next]).toFixed()).to.equal('355');
  });

  describe('laws', () => {
    const instant = fc.integer({ min: january.start, max: january.end - 1 });
    const quantity = fc.integer({ min: 0, max: 40 });
    const price = fc.oneof(
      fc.constant(slabs),
      fc.integer({ min: 0, max: 100_000 }).map((cents) => flat(String(cents / 100))),
    );

    it('the parts of a period add up to the whole: what is kept and what is given back is what was billed', () =>
      fc.assert(
        fc.property(price, quantity, instant, (terms, units, end) => {
          const item = seat(units, terms);
          const kept = charged({ ...item, end_ms: end });
          expect(
            charged(item)
              .plus(net([ends(item, end)], []))
              .toFixed(),
          ).to.equal(kept.toFixed());
        }),
      ));

    it('of months in a quarter each is kept, cut or given back: together what the served time costs', () =>
      fc.assert(
        fc.property(
          price,
          quantity,
          fc.integer({ min: january.start, max: at('2026-04-01') - 1 }),
          (terms, units, end) => {
            const quarter = {
              subscription: { ...subscription, billing_period: 'QUARTERLY' as const },
              current: { start: january.start, end: at('2026-04-01') },
              currency: 'usd',
            };
            const month = seat(units, terms);
            const months = (item: PricedItem) => planChangeLines({ ...quarter, endings: [], beginnings: [item] });
            const billed_lines = months(month).map(toBilledLine);
            const credits = planChangeLines({
              ...quarter,
              endings: [{ item: month, at: end, billed_lines }],
              beginnings: [],
            });
            expect(total([...months(month), ...credits]).toFixed()).to.equal(
              total(months({ ...month, end_ms: end })).toFixed(),
            );
          },
        ),
      ));

    it('never more is given back than was billed, however often a line is ended earlier', () =>
      fc.assert(
        fc.property(price, quantity, fc.array(instant, { minLength: 1, maxLength: 6 }), (terms, units, instants) => {
          const whole = seat(units, terms);
          let before: readonly BilledItemLine[] = billed(whole);
          let left = charged(whole);
          let end: number | null = null;
          for (const next of [...instants].sort((a, b) => b - a)) {
            const endings = [ends({ ...whole, end_ms: end }, next, before)];
            const given = planChangeLines({ ...running, endings, beginnings: [] });
            before = [...before, ...given.map(toBilledLine)];
            left = left.plus(total(given));
            end = next;
          }
          expect(left.isNegative()).to.equal(false);
          expect(left.toFixed()).to.equal(charged({ ...whole, end_ms: end }).toFixed());
        }),
      ));

    it('changes at one instant come to the same, whatever lies between the first and the last', () =>
      fc.assert(
        fc.property(price, fc.array(quantity, { minLength: 2, maxLength: 6 }), instant, (terms, units, when) => {
          const [first, ...others] = units.map((one) => seat(one, terms));
          let sum = ZERO;
          let before = first!;
          for (const next of others) {
            const begun = { ...next, start_ms: when };
            sum = sum.plus(net([ends(before, when)], [begun]));
            before = begun;
          }
          const last = { ...others.at(-1)!, start_ms: when };
          expect(sum.toFixed()).to.equal(net([ends(first!, when)], [last]).toFixed());
        }),
      ));

    it('to and back at one instant comes to nothing', () =>
      fc.assert(
        fc.property(price, quantity, quantity, instant, (terms, from, to, when) => {
          const [before, between] = [seat(from, terms), seat(to, terms, { start_ms: when })];
          const there = net([ends(before, when)], [between]);
          const back = net([ends(between, when)], [{ ...before, start_ms: when }]);
          expect(there.plus(back).toFixed()).to.equal('0');
        }),
        // 31 × 49 / 56: half a cent.
        { examples: [[flat('31'), 1, 4, at('2026-01-01') + (31 * 86_400_000) / 8]] },
      ));

    it('changes of several lines at one instant come to the same in any order, and in one request', () =>
      fc.assert(
        fc.property(
          fc.array(fc.tuple(price, quantity, quantity), { minLength: 1, maxLength: 5 }),
          instant,
          (changes, when) => {
            const all = changes.map(([terms, from, to], index) => ({
              ending: ends(seat(from, terms, { id: `seat ${index}` }), when),
              beginning: seat(to, terms, { id: `seat ${index} then`, start_ms: when }),
            }));
            const one = (some: typeof all) =>
              net(
                some.map(({ ending }) => ending),
                some.map(({ beginning }) => beginning),
              );
            const each = sumDecimals([...all].reverse().map((change) => one([change])));
            expect(each.toFixed()).to.equal(one(all).toFixed());
          },
        ),
      ));
  });
});
