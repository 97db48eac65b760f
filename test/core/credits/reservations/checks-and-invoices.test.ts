/**
 * Checks decide limit by limit (core/credits/reservations/room.ts), and each group of grants by itself; invoices put limits together by parts (beside.ts) and grants
 * by instants (`usedUpInAny`). Both say the same of the next units, also how many of them are free (docs/rules/entitlements.md, "Limits beside each other"). Of what
 * was given back they need not: an invoice charges no more than is left of all usage of the period, which no limit of a check is about.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { deriveFeatureVerdict, type FeatureLimit, showLimit } from '../../../../core/credits/reservations/room.ts';
import { Decimal } from '../../../../core/foundation/decimal.ts';
import { formatMs } from '../../../../core/foundation/time/instant.ts';
import type { Period } from '../../../../core/foundation/time/period.ts';
import {
  applyAllowances,
  type MeasuredAllowance,
  measureGrants,
} from '../../../../core/rating/allowances/allowance.ts';
import type { GrantDuration } from '../../../../core/rating/allowances/grant-window.ts';
import {
  computeFreeWindows,
  computeGrantGroupState,
  computeGrantHistory,
  type Granting,
} from '../../../../core/rating/allowances/grants.ts';
import { splitAtLimits } from '../../../../core/rating/allowances/independent-limits.ts';
import { OrderedUsage } from '../../../../core/rating/allowances/ordered-usage.ts';
import { runSteps } from '../../../support/result-of.ts';
import { samples } from '../../../support/samples.ts';

const HOUR_MS = 3_600_000;
const HOURS = 240;
const CYCLE = { start: Date.UTC(2026, 2, 2), end: Date.UTC(2026, 2, 2) + HOURS * HOUR_MS };
const hour = (count: number) => CYCLE.start + count * HOUR_MS;
const decimal = (units: number) => new Decimal(String(units));

type Stated = { readonly limit: number; readonly length: number };
type Terms = { readonly limits: readonly Stated[]; readonly groups: Granting['groups'] };

function windowsOf({ length }: Stated): Period[] {
  return Array.from({ length: Math.ceil(HOURS / length) }, (_, index) => ({
    start: hour(index * length),
    end: Math.min(hour((index + 1) * length), CYCLE.end),
  }));
}

const grantingOf = ({ groups }: Terms): Granting => ({ measure: 'quantity', groups, cycles: [CYCLE], timezone: 'UTC' });

/** What an invoice for a part of the period charges. */
function charged(terms: Terms, usage: OrderedUsage, charge: Period): Decimal {
  const until = ({ start, end }: Period, at: number) => usage.sumBetween({ start, end: Math.min(end, at) });
  const limits = terms.limits.map(
    (stated): MeasuredAllowance => ({
      limit: decimal(stated.limit),
      windows: windowsOf(stated)
        .filter(({ start, end }) => start < charge.end && charge.start < end)
        .map((one) => ({ ...one, before: until(one, charge.start), after: until(one, charge.end) })),
    }),
  );
  const granting = grantingOf(terms);
  const granted =
    terms.groups.length === 0
      ? []
      : [measureGrants(runSteps(computeFreeWindows(granting, usage)), { usage, charge, granting })];
  const allowances = [...limits, ...granted];
  const parts = splitAtLimits(allowances, charge).map((part) => ({ ...part, used: usage.sumBetween(part) }));
  return applyAllowances({ quantity: usage.sumBetween(charge), buckets: null, allowances, parts }).quantity;
}

/** As a check gathers them: the window of each limit that runs, and how each group of grants is now. */
function limitsAt(terms: Terms, usage: OrderedUsage, now: number): FeatureLimit[] {
  const said = (limit: Decimal, counted: Decimal, { start, end }: Period): FeatureLimit => ({
    limit,
    counted,
    is_soft_limit: false,
    usage_reset_period: null,
    grant_measure: null,
    window_start: formatMs(start),
    window_end: formatMs(end),
    committed: decimal(0),
    doubtful: decimal(0),
    held_by_others: decimal(0),
  });
  const stated = terms.limits.map((one) => {
    const window = windowsOf(one).find(({ start, end }) => start <= now && now < end)!;
    return said(decimal(one.limit), usage.sumBetween(window), window);
  });
  const granted = terms.groups.map((group) => {
    const history = runSteps(computeGrantHistory(group, grantingOf(terms), usage));
    const { limit, used, window } = computeGrantGroupState(now, { group, cycle: CYCLE, usage, history });
    return said(limit, used, window);
  });
  return [...stated, ...granted];
}

describe('checks and invoices', () => {
  const duration: fc.Arbitrary<GrantDuration> = fc.oneof(
    fc.record({
      unit: fc.constantFrom('hour' as const, 'day' as const),
      value: fc.integer({ min: 1, max: 5 }),
      allocation: fc.constantFrom('first_usage' as const, 'unit_start' as const),
    }),
    fc.constant({ unit: 'subscription_period' as const }),
  );
  const grants = fc.record({ quota: fc.integer({ min: 1, max: 40 }).map(decimal), duration });
  const limit = fc.record({ limit: fc.nat(50), length: fc.constantFrom(5, 24, 60, HOURS) });
  const terms = fc
    .record({
      limits: fc.array(limit, { maxLength: 3 }),
      groups: fc.array(fc.array(grants, { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
    })
    .filter(({ limits, groups }) => limits.length + groups.length > 0);
  const portions = fc.uniqueArray(fc.tuple(fc.nat(HOURS * 2 - 1), fc.nat(12)), {
    selector: ([half]) => half,
    maxLength: 40,
  });
  const usageOf = (list: readonly (readonly [half: number, units: number])[]) =>
    new OrderedUsage(
      list.toSorted((a, b) => a[0] - b[0]).map(([half, units]) => ({ at: hour(half / 2), used: decimal(units) })),
    );

  it('the next units are allowed exactly where an invoice would charge none of them, and as many remain as it would not charge', () => {
    let allowed = 0;
    let refused = 0;
    fc.assert(
      fc.property(
        terms,
        portions,
        fc.tuple(fc.nat(HOURS * 2 - 1), fc.nat(100), fc.integer({ min: 1, max: 30 })),
        (of, list, [half, cut, units]) => {
          // Between the instants of usage; the charge begins somewhere before.
          const now = hour(half / 2 + 0.25);
          const before = list.filter(([at]) => hour(at / 2) < now);
          const charge = { start: hour(Math.floor((half / 2) * (cut / 100))), end: CYCLE.end };
          const usage = usageOf(before);
          const more = new OrderedUsage([...usage.portions, { at: now, used: decimal(units) }]);
          const grown = charged(of, more, charge).minus(charged(of, usage, charge));
          const limits = limitsAt(of, usage, now);
          const room = { kind: 'limited', limits, as_of: formatMs(now) } as const;
          const verdict = deriveFeatureVerdict(room, {
            quantity: decimal(units),
            held: decimal(0),
            when_in_doubt: 'deny',
          });
          expect(verdict.allowed, `${grown} of ${units} would be charged`).to.equal(grown.isZero());
          const left = limits.map((one) => Number(showLimit(one, decimal(0)).remaining));
          expect(grown.toNumber(), 'of more than remains the rest').to.equal(Math.max(0, units - Math.min(...left)));
          if (verdict.allowed) allowed++;
          else refused++;
        },
      ),
      { numRuns: samples(2000) },
    );
    expect(Math.min(allowed, refused), 'it says something of both').to.be.greaterThan(samples(2000) / 20);
  });
});
