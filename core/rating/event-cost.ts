/**
 * The difference that one event makes to the charges of a subscription: the unrounded cost of each charge without the event and with it
 * (docs/rules/events.md, "The thread of an event"). A charge is rounded on its invoice, and never here.
 */
import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import { groupBy } from '../foundation/group-by.ts';
import type { Period } from '../foundation/time/period.ts';
import type { LineAmount } from './line-amount.ts';
import { chargeKey } from './plan-invoice.ts';

type ComparedCharge = LineAmount & {
  readonly item: { readonly id: string };
  readonly service: Period;
};

export type EventCost<Charge extends ComparedCharge> = {
  /** The charge with the event. */
  readonly charge: Charge;
  readonly quantity_before: Decimal;
  readonly quantity_after: Decimal;
  readonly before: Decimal;
  readonly after: Decimal;
  /** Cost of the event: `after` − `before`. */
  readonly amount: Decimal;
  /** Last tier whose units the event changes, from 0; null without tiers. */
  readonly tier: number | null;
  /** The amount as a sum. */
  readonly written_out: string;
};

/** Compares the charges without and with an event. The lines of one charge, such as its overage, are added up. */
export function compareCharges<Charge extends ComparedCharge>(
  before: readonly Charge[],
  after: readonly Charge[],
): EventCost<Charge>[] {
  const earlier = groupBy(before, ({ item, service }) => chargeKey(item.id, service));
  return [...groupBy(after, ({ item, service }) => chargeKey(item.id, service))].map(([key, lines]) => {
    const others = earlier.get(key) ?? [];
    const [without, cost] = [computeCost(others), computeCost(lines)];
    const amount = cost.minus(without);
    const steps = listSteps(others, lines);
    return {
      charge: lines[0]!,
      quantity_before: sumDecimals(others.map(({ quantity }) => quantity)),
      quantity_after: sumDecimals(lines.map(({ quantity }) => quantity)),
      before: without,
      after: cost,
      amount,
      tier: steps.findLast(({ tier }) => tier !== null)?.tier ?? null,
      written_out: writeOut(steps, { before: without, after: cost, amount }),
    };
  });
}

/** Unrounded cost. The shares of a commitment of the subscription are computed from rounded lines, so they have no other. */
function computeCost(lines: readonly ComparedCharge[]): Decimal {
  return sumDecimals(
    lines.map(({ amount, exact, computed_from }) => (computed_from.drawn_from ? amount : (exact ?? amount))),
  );
}

type CostStep = {
  readonly tier: number | null;
  readonly unit_amount: string;
  readonly units: Decimal;
  readonly flat_amount: Decimal;
};

/** Lists the units and fixed amounts that the event adds to each tier at each unit price, in the order of the tiers. */
function listSteps(before: readonly ComparedCharge[], after: readonly ComparedCharge[]): CostStep[] {
  const parts = [...before.flatMap((line) => toSteps(line, -1)), ...after.flatMap((line) => toSteps(line, 1))];
  return [...groupBy(parts, ({ tier, unit_amount }) => `${tier} ${unit_amount}`).values()]
    .map((same) => ({
      ...same[0]!,
      units: sumDecimals(same.map(({ units }) => units)),
      flat_amount: sumDecimals(same.map(({ flat_amount }) => flat_amount)),
    }))
    .filter(({ units, flat_amount }) => !units.isZero() || !flat_amount.isZero())
    .sort((a, b) => (a.tier ?? 0) - (b.tier ?? 0));
}

type CostPartText = { tier: number | null; units: string; unit_amount: string; flat_amount: string };

function toSteps({ computed_from }: ComparedCharge, sign: 1 | -1): CostStep[] {
  // The overage line of a charge repeats the breakdown of the charge.
  if (computed_from.kind === 'overage') return [];
  return ((computed_from.breakdown ?? []) as CostPartText[]).map(({ tier, units, unit_amount, flat_amount }) => ({
    tier,
    unit_amount,
    units: new Decimal(units).times(sign),
    flat_amount: new Decimal(flat_amount).times(sign),
  }));
}

type ComparedCosts = Pick<EventCost<ComparedCharge>, 'before' | 'after' | 'amount'>;

/** Writes the amount as the sum of its steps; if they are not the amount, as the difference of the costs. */
function writeOut(steps: readonly CostStep[], { before, after, amount }: ComparedCosts): string {
  const sum = sumDecimals(
    steps.map(({ units, unit_amount, flat_amount }) => units.times(unit_amount).plus(flat_amount)),
  );
  if (!sum.eq(amount)) return `${after.toFixed()} − ${before.toFixed()}`;
  const terms = steps.flatMap(({ units, unit_amount, flat_amount }) => [
    ...(units.isZero() ? [] : [{ sign: units, text: `${units.abs().toFixed()} × ${unit_amount}` }]),
    ...(flat_amount.isZero() ? [] : [{ sign: flat_amount, text: flat_amount.abs().toFixed() }]),
  ]);
  const [first, ...others] = terms;
  if (!first) return ZERO.toFixed();
  const rest = others.map(({ sign, text }) => ` ${sign.isNegative() ? '−' : '+'} ${text}`);
  return `${first.sign.isNegative() ? '−' : ''}${first.text}${rest.join('')}`;
}
