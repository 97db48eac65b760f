/** What is granted bit by bit: tables and laws (docs/rules/entitlements.md, "Grants"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals, ZERO } from '../../../../core/foundation/decimal.ts';
import { formatMs } from '../../../../core/foundation/time/instant.ts';
import type { Period } from '../../../../core/foundation/time/period.ts';
import { applyAllowances, measureGrants } from '../../../../core/rating/allowances/allowance.ts';
import { computeGrantWindow, type GrantDuration } from '../../../../core/rating/allowances/grant-window.ts';
import {
  computeFreeWindows,
  computeGrantGroupState,
  computeGrantHistory,
  type GrantHistoryState,
  type Granting,
  type Grants,
  toHistoryState,
} from '../../../../core/rating/allowances/grants.ts';
import { OrderedUsage } from '../../../../core/rating/allowances/ordered-usage.ts';
import { runSteps } from '../../../support/result-of.ts';
import { samples } from '../../../support/samples.ts';

const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 2, 1);
const CYCLE = { start: START, end: Date.UTC(2026, 3, 1) };
const hour = (count: number) => START + count * HOUR_MS;
const hours = (value: number): GrantDuration => ({ unit: 'hour', value, allocation: 'first_usage' });
const grantsOf = (quota: number | string, duration: GrantDuration): Grants => ({
  quota: new Decimal(String(quota)),
  duration,
});
const usedAt = (...portions: [hour: number, units: number][]) =>
  new OrderedUsage(portions.map(([at, units]) => ({ at: hour(at), used: new Decimal(String(units)) })));
const granting = (...groups: Grants[][]): Granting => ({
  measure: 'quantity',
  groups,
  cycles: [CYCLE],
  timezone: 'UTC',
});

function billable(of: Granting, usage: OrderedUsage, charge: Period = CYCLE): Decimal {
  const allowances = [measureGrants(runSteps(computeFreeWindows(of, usage)), { usage, charge, granting: of })];
  return applyAllowances({ quantity: usage.sumBetween(charge), buckets: null, allowances }).quantity;
}

describe('what is granted bit by bit', () => {
  const rows: [what: string, of: Granting, usage: OrderedUsage, expected: string][] = [
    ['the rest of a grant is gone when it ends', granting([grantsOf(10, hours(5))]), usedAt([1, 4], [6, 12]), '2'],
    ['usage at its end opens the next', granting([grantsOf(10, hours(5))]), usedAt([1, 10], [6, 10]), '0'],
    ['usage before its end does not', granting([grantsOf(10, hours(5))]), usedAt([1, 10], [5.9, 10]), '10'],
    ['an event of nothing opens none', granting([grantsOf(10, hours(5))]), usedAt([1, 0], [5, 10], [6, 10]), '10'],
    ['what is given back makes room', granting([grantsOf(10, hours(5))]), usedAt([1, 12], [2, -5], [3, 4]), '1'],
    ['and no more than was charged', granting([grantsOf(10, hours(5))]), usedAt([1, 12], [2, -5]), '0'],
    [
      'grants of one length add up',
      granting([grantsOf(10, hours(5)), grantsOf(5, hours(5))]),
      usedAt([1, 12], [2, 4]),
      '1',
    ],
    [
      'the one that ends first is drawn from first, so that the longer has more when that is new',
      granting([grantsOf(100, hours(24)), grantsOf(10, hours(5))]),
      usedAt([1, 60], [7, 60]),
      '0',
    ],
    [
      'what holds beside another lets through what both do',
      granting([grantsOf(10, hours(5))], [grantsOf(15, hours(24))]),
      usedAt([1, 12], [7, 8]),
      // 2 above the first five hours; of the second 8 only 3 are left of the day, which counts what was charged, too.
      '7',
    ],
    [
      'what neither makes free is charged once',
      granting([grantsOf(10, hours(5))], [grantsOf(10, hours(24))]),
      usedAt([1, 30]),
      '20',
    ],
  ];
  for (const [what, of, usage, expected] of rows)
    it(what, () => {
      expect(billable(of, usage).toFixed()).to.equal(expected);
    });

  it('a day lasts until the same time of day where the clock is changed between', () => {
    const at = Date.UTC(2026, 2, 28, 11);
    const opening = { cycle: CYCLE, free_from: START, timezone: 'Europe/Berlin' };
    const rolling = computeGrantWindow(at, { unit: 'day', value: 1, allocation: 'first_usage' }, opening);
    expect(formatMs(rolling.end)).to.equal('2026-03-29T10:00:00.000Z');
    const aligned = computeGrantWindow(at, { unit: 'day', value: 2, allocation: 'unit_start' }, opening);
    expect([aligned.start, aligned.end].map(formatMs)).to.deep.equal([
      '2026-03-27T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ]);
  });

  it('says what is left of each grant at an instant', () => {
    const group = [grantsOf(100, hours(24)), grantsOf(10, hours(5))];
    const all = usedAt([1, 12], [7, 105]);
    const stateAt = (at: number) => {
      const usage = new OrderedUsage(all.portions.filter((portion) => portion.at <= hour(at)));
      const history = runSteps(computeGrantHistory(group, granting(group), usage));
      const { limit, used, window, grants } = computeGrantGroupState(hour(at), { group, cycle: CYCLE, usage, history });
      const told = grants.map((one) => [one.used.toFixed(), one.window && (one.window.end - START) / HOUR_MS]);
      return [limit.toFixed(), used.toFixed(), (window.end - START) / HOUR_MS, told];
    };
    expect(stateAt(0)).to.deep.equal([
      '110',
      '0',
      744,
      [
        ['0', null],
        ['0', null],
      ],
    ]);
    expect(stateAt(2)).to.deep.equal([
      '110',
      '12',
      6,
      [
        ['2', 25],
        ['10', 6],
      ],
    ]);
    expect(stateAt(6.5)).to.deep.equal([
      '110',
      '2',
      25,
      [
        ['2', 25],
        ['0', null],
      ],
    ]);
    // 98 were left of the day and 10 of the new five hours: 105 fit, and 5 hours later they count no more.
    expect(stateAt(8)).to.deep.equal([
      '110',
      '107',
      12,
      [
        ['97', 25],
        ['10', 12],
      ],
    ]);
  });
});

describe('laws of what is granted bit by bit', () => {
  const duration = fc.oneof(
    fc.record({
      unit: fc.constantFrom('hour' as const, 'day' as const, 'week' as const),
      value: fc.integer({ min: 1, max: 9 }),
      allocation: fc.constantFrom('first_usage' as const, 'unit_start' as const),
    }),
    fc.constant({ unit: 'subscription_period' as const }),
  );
  const some = fc.record({
    quota: fc.integer({ min: 1, max: 60 }).map((quota) => new Decimal(String(quota))),
    duration,
  });
  const portions = (least: number) =>
    fc
      .uniqueArray(fc.tuple(fc.integer({ min: 0, max: 30 * 24 * 4 - 1 }), fc.integer({ min: least, max: 25 })), {
        selector: ([quarter]) => quarter,
        maxLength: 60,
      })
      .map((list) =>
        usedAt(...list.sort((a, b) => a[0] - b[0]).map(([at, units]): [number, number] => [at / 4, units])),
      );
  const groups = fc.array(fc.array(some, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
  const assert = <Case>(property: fc.IProperty<Case>) => fc.assert(property, { numRuns: samples(300) });

  /** Unit by unit, with the counters that a person would keep. */
  function counted(of: Granting, usage: OrderedUsage): Decimal {
    const counters = of.groups.map((group) =>
      group.map(({ quota, duration: lasts }) => ({ quota, lasts, left: 0, end: 0 })),
    );
    let charged = 0;
    for (const { at, used } of usage.portions.filter((portion) => !portion.used.isZero())) {
      for (const counter of counters.flat()) {
        if (at < counter.end) continue;
        const free_from = Math.max(counter.end, CYCLE.start);
        counter.end = computeGrantWindow(at, counter.lasts, { cycle: CYCLE, free_from, timezone: 'UTC' }).end;
        counter.left = counter.quota.toNumber();
      }
      for (let unit = 0; unit < used.toNumber(); unit++) {
        const free = counters.map((group) => {
          const first = group.filter(({ left }) => left > 0).sort((a, b) => a.end - b.end)[0];
          if (first) first.left--;
          return first !== undefined;
        });
        if (!free.every(Boolean)) charged++;
      }
    }
    return new Decimal(String(charged));
  }

  it('charge what a count of single units charges', () => {
    assert(
      fc.property(groups, portions(0), (of, usage) => {
        expect(billable(granting(...of), usage).toFixed()).to.equal(counted(granting(...of), usage).toFixed());
      }),
    );
  });

  it('never make free more than the grants of any group that were opened, nor more than is used', () => {
    assert(
      fc.property(groups, portions(0), (of, usage) => {
        const free = usage.sumBetween(CYCLE).minus(billable(granting(...of), usage));
        expect(free.gte(0) && free.lte(usage.sumBetween(CYCLE))).to.equal(true);
        for (const group of of) {
          const { opened } = runSteps(computeGrantHistory(group, granting(group), usage));
          const granted = sumDecimals(group.map(({ quota }, index) => quota.times(String(opened[index]!.length))));
          expect(free.lte(granted)).to.equal(true);
          for (const [index, windows] of opened.entries())
            for (const { used } of windows) expect(used.lte(group[index]!.quota)).to.equal(true);
        }
      }),
    );
  });

  it('grants of one kind follow one another without overlapping, each inside of the period and begun by usage', () => {
    assert(
      fc.property(some, portions(1), (grants, usage) => {
        const windows = runSteps(computeGrantHistory([grants], granting([grants]), usage)).opened[0]!;
        for (const [index, { start, end }] of windows.entries()) {
          expect(start < end && start >= CYCLE.start && end <= CYCLE.end).to.equal(true);
          if (index > 0) expect(start).to.be.gte(windows[index - 1]!.end);
          expect(usage.sumBetween({ start, end }).gt(0)).to.equal(true);
        }
        expect(sumDecimals(windows.map((window) => usage.sumBetween(window))).toFixed()).to.equal(
          usage.sumBetween(CYCLE).toFixed(),
        );
      }),
    );
  });

  it('charges of parts of a period add up to the charge of all of it', () => {
    assert(
      fc.property(groups, portions(0), fc.integer({ min: 0, max: 30 * 24 }), (of, usage, at) => {
        const parts = [
          { start: CYCLE.start, end: hour(at) },
          { start: hour(at), end: CYCLE.end },
        ];
        const until = new OrderedUsage(usage.portions.filter((portion) => portion.at < hour(at)));
        const [first, second] = parts as [Period, Period];
        const sum = billable(granting(...of), until, first).plus(billable(granting(...of), usage, second));
        expect(sum.toFixed()).to.equal(billable(granting(...of), usage).toFixed());
      }),
    );
  });

  it('one that is alone is a limit of each of its stretches, whatever is given back', () => {
    assert(
      fc.property(some, portions(-15), (grants, usage) => {
        const { opened, used_up } = runSteps(computeGrantHistory([grants], granting([grants]), usage));
        const above = sumDecimals(
          opened[0]!.map((window) => Decimal.max(ZERO, usage.sumBetween(window).minus(grants.quota))),
        );
        const charged = sumDecimals(used_up.map((one) => Decimal.max(ZERO, usage.sumBetween(one).minus(one.limit))));
        expect(charged.toFixed()).to.equal(above.toFixed());
      }),
    );
  });
});

describe('a history that goes on', () => {
  const durations: GrantDuration[] = [
    hours(5),
    hours(2),
    { unit: 'day', value: 1, allocation: 'first_usage' },
    { unit: 'day', value: 1, allocation: 'unit_start' },
    { unit: 'subscription_period' },
  ];
  const anyGroup = fc.array(
    fc.record({ quota: fc.integer({ min: 1, max: 12 }), duration: fc.constantFrom(...durations) }),
    { maxLength: 3 },
  );
  const anyUsage = fc.array(fc.tuple(fc.nat(60), fc.integer({ min: -4, max: 9 })), { maxLength: 25 });

  it('is the same as one that begins anew, wherever it was cut, and however often', () => {
    fc.assert(
      fc.property(
        anyGroup,
        anyUsage,
        fc.array(fc.nat(30), { maxLength: 3 }),
        fc.nat(70),
        (drawn, portions, cuts, now) => {
          const group = drawn.map(({ quota, duration }) => grantsOf(quota, duration));
          const inOrder = [...new Map(portions).entries()].sort(([a], [b]) => a - b);
          const all = usedAt(...inOrder);
          const terms = { cycles: [CYCLE], timezone: 'UTC' };
          const at = hour(Math.max(now, ...cuts));
          let before: GrantHistoryState | null = null;
          let usage = all;
          for (const cut of cuts.toSorted((a, b) => a - b).map(hour)) {
            const [early, late] = usage.splitAt(cut);
            const history = runSteps(computeGrantHistory(group, terms, early, before));
            before = toHistoryState(cut, { history, usage: early, before });
            usage = late;
          }
          const history = runSteps(computeGrantHistory(group, terms, usage, before));
          const anew = runSteps(computeGrantHistory(group, terms, all));
          const told = (now: ReturnType<typeof computeGrantGroupState>) => JSON.parse(JSON.stringify(now));
          expect(told(computeGrantGroupState(at, { group, cycle: CYCLE, usage, history, before }))).to.deep.equal(
            told(computeGrantGroupState(at, { group, cycle: CYCLE, usage: all, history: anew })),
          );
          // What is known stays as it was for who goes on from there again.
          const again = runSteps(computeGrantHistory(group, terms, usage, before));
          expect(
            told(computeGrantGroupState(at, { group, cycle: CYCLE, usage, history: again, before })),
          ).to.deep.equal(told(computeGrantGroupState(at, { group, cycle: CYCLE, usage, history, before })));
        },
      ),
      { numRuns: samples(2000) },
    );
  });
});
