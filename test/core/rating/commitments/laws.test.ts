/** What a commitment comes to, however usage is spread over lines, periods and invoices (docs/rules/commitments.md). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals, ZERO } from '../../../../core/foundation/decimal.ts';
import {
  applyCommitment,
  type CommitmentPool,
  drawFrom,
  lackingAmount,
} from '../../../../core/rating/commitments/pool.ts';
import { computeTrueUp, shareOut } from '../../../../core/rating/commitments/subscription.ts';
import { computeTerm } from '../../../../core/rating/commitments/term.ts';
import { windowedCharge } from '../../../../core/rating/commitments/windowed.ts';

const cents = (max: number) => fc.integer({ min: 0, max }).map((n) => new Decimal(n).dividedBy(100));
const factor = fc.integer({ min: 100, max: 400 }).map((n) => new Decimal(n).dividedBy(100));
const spread = fc.array(cents(20_000), { minLength: 1, maxLength: 8 });

/** Usage U of a commitment C: C + (U - C) × F above it; below it U, or C where what is lacking is charged. */
function paid(
  usage: Decimal,
  amount: Decimal,
  { overage_factor, true_up }: { overage_factor: Decimal; true_up: boolean },
): Decimal {
  if (usage.gte(amount)) return amount.plus(usage.minus(amount).times(overage_factor));
  return true_up ? amount : usage;
}

describe('laws of commitments', () => {
  it('lines that share a commitment of several periods never have less of it than nothing, or more than they cost', () => {
    const pool: CommitmentPool = {
      amount: new Decimal('0.05'),
      overage_factor: new Decimal(1),
      used: ZERO,
      is_trued_up: false,
    };
    const dollars = Array.from({ length: 10 }, () => new Decimal(1));
    const { shares } = shareOut(dollars, pool, { currency: 'usd', in_order: false });
    const texts = shares.map(({ within, above }) => `${within.toFixed()} ${above.toFixed()}`);
    expect(texts).to.deep.equal([...Array(5).fill('0 1'), ...Array(5).fill('0.01 0.99')]);
    const used = fc.integer({ min: 0, max: 2_000_000 }).map((n) => new Decimal(n).dividedBy(10_000));
    fc.assert(
      fc.property(
        fc.array(cents(300), { minLength: 1, maxLength: 12 }),
        cents(2_000),
        used,
        factor,
        fc.boolean(),
        (amounts, amount, before, overage_factor, in_order) => {
          const drawn: CommitmentPool = { amount, overage_factor, used: before, is_trued_up: false };
          const shared = shareOut(amounts, drawn, { currency: 'usd', in_order });
          for (const [index, { within, above, overage }] of shared.shares.entries()) {
            expect(within.plus(above).toFixed()).to.equal(amounts[index]!.toFixed());
            for (const part of [within, above, overage]) {
              expect(part.gte(0)).to.equal(true);
              expect(part.decimalPlaces()).to.be.at.most(2);
            }
          }
        },
      ),
    );
  });

  it('a line pays what the rule says', () =>
    fc.assert(
      fc.property(cents(50_000), cents(50_000), factor, fc.boolean(), (usage, amount, overage_factor, true_up) => {
        const committed = { amount, overage_factor, true_up };
        const charged = applyCommitment(usage, committed);
        expect(charged.charge.toFixed()).to.equal(paid(usage, amount, committed).toFixed());
        expect(charged.charge.gte(true_up ? amount : ZERO)).to.equal(true);
        expect(charged.utilized.plus(charged.overage).plus(charged.true_up).toFixed()).to.equal(
          charged.charge.toFixed(),
        );
      }),
    ));

  it('the periods of a term add up to what the term pays in one', () =>
    fc.assert(
      fc.property(spread, cents(50_000), factor, fc.boolean(), (periods, amount, overage_factor, true_up) => {
        let used = ZERO;
        const charges = periods.map((usage, index) => {
          const is_last = index === periods.length - 1;
          const { charge } = applyCommitment(usage, { amount, overage_factor, true_up: true_up && is_last }, used);
          used = used.plus(usage);
          return charge;
        });
        const whole = paid(sumDecimals(periods), amount, { overage_factor, true_up });
        expect(sumDecimals(charges).toFixed()).to.equal(whole.toFixed());
      }),
    ));

  it('usage that is taken back and comes again changes nothing', () =>
    fc.assert(
      fc.property(cents(20_000), cents(20_000), cents(20_000), factor, (used, usage, amount, overage_factor) => {
        const pool: CommitmentPool = { amount, overage_factor, used, is_trued_up: false };
        const there = drawFrom(pool, usage);
        const back = drawFrom(there.left, usage.negated());
        expect(back.left).to.deep.equal(pool);
        expect(there.utilized.plus(there.overage).plus(back.utilized).plus(back.overage).toFixed()).to.equal('0');
      }),
    ));

  it('the lines of a subscription add up to what it pays, in whichever order and in proportion', () =>
    fc.assert(
      fc.property(
        spread,
        cents(50_000),
        cents(20_000),
        factor,
        fc.boolean(),
        fc.boolean(),
        (amounts, amount, used, overage_factor, in_order, true_up) => {
          const pool: CommitmentPool = { amount, overage_factor, used, is_trued_up: false };
          const sum = (lines: readonly Decimal[]) => {
            const { shares, left } = shareOut(lines, pool, { currency: 'usd', in_order });
            for (const [index, { within, above }] of shares.entries())
              expect(within.plus(above).toFixed()).to.equal(lines[index]!.toFixed());
            const lacking = computeTrueUp(left, { amount, overage_factor, true_up, duration: null }, 'usd') ?? ZERO;
            expect(lacking.toFixed()).to.equal((true_up ? lackingAmount(left) : ZERO).toFixed());
            return sumDecimals(shares.map(({ within, overage }) => within.plus(overage))).plus(lacking);
          };
          const terms = { overage_factor, true_up };
          const all = used.plus(sumDecimals(amounts));
          // What was drawn before was paid before, without what was lacking then.
          const before = paid(used, amount, { ...terms, true_up: false });
          const expected = paid(all, amount, terms).minus(before).toDecimalPlaces(2);
          expect(sum(amounts).toFixed()).to.equal(expected.toFixed());
          expect(sum(amounts.toReversed()).toFixed()).to.equal(expected.toFixed());
        },
      ),
    ));

  it('windows are committed to one by one: used ones, and where what is lacking is charged the others too', () => {
    const HOUR = 3_600_000;
    const start = Date.parse('2026-03-29T00:00:00Z');
    const hours = fc.uniqueArray(fc.record({ hour: fc.integer({ min: 0, max: 47 }), n: cents(2_000) }), {
      selector: ({ hour }) => hour,
      maxLength: 20,
    });
    fc.assert(
      fc.property(hours, cents(1_000), factor, fc.boolean(), (used, value, overage_factor, true_up) => {
        const charged = windowedCharge({
          commitment: {
            type: 'amount',
            value,
            overage_factor,
            true_up,
            duration: null,
            windows: { size: 'HOUR', timezone: 'Europe/Berlin', billing_anchor: null },
            time_buckets: [],
          },
          price: { billing_model: 'FLAT_FEE', currency: 'usd', amount: '1' },
          range: { start, end: start + 48 * HOUR },
          over_until: start + 48 * HOUR,
          used: used.map(({ hour, n }) => ({ at: start + hour * HOUR, values: [n] })),
        });
        const of = used.map(({ n }) => paid(n, value, { overage_factor, true_up }));
        const empty = true_up ? value.times(48 - used.length) : ZERO;
        expect(charged.charge.toFixed()).to.equal(sumDecimals(of).plus(empty).toFixed());
      }),
    );
  });

  it('terms follow one another without a gap, each as long as the duration says', () => {
    const MONTHS = { QUARTERLY: 3, HALF_YEARLY: 6, ANNUAL: 12 } as const;
    const durations = fc.constantFrom(...(Object.keys(MONTHS) as (keyof typeof MONTHS)[]));
    const since = fc
      .integer({ min: Date.UTC(2024, 0) / 60_000, max: Date.UTC(2028, 0) / 60_000 })
      .map((m) => m * 60_000);
    const zone = fc.constantFrom('UTC', 'America/New_York', 'Pacific/Apia', 'Pacific/Pago_Pago');
    fc.assert(
      fc.property(since, durations, zone, (first, duration, timezone) => {
        const rule = { since: first, duration, timezone };
        let [at, months] = [first, 0];
        while (months < 36) {
          const term = computeTerm(at, rule);
          expect(term.start).to.equal(at);
          expect(computeTerm(term.end - 1, rule)).to.deep.equal(term);
          at = term.end;
          months += MONTHS[duration];
        }
        expect(computeTerm(at, rule).start).to.equal(at);
      }),
    );
  });
});
