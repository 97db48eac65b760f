/**
 * Splits the amount of a line over groups of its usage (docs/rules/invoices.md, "Who used it"). The shares add up to
 * the amount to the last minor unit. This also applies to an aggregation that does not add up, such as a maximum.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { spread } from '../../foundation/spread.ts';

export type GroupUsage<Group> = { readonly group: Group; readonly usage: Decimal; readonly event_count: number };
export type GroupBreakdown<Group> = GroupUsage<Group> & { readonly cost: Decimal; readonly percentage: Decimal };

const PERCENT_DIGITS = 2;

const toSortKey = ({ group }: { readonly group: unknown }) => JSON.stringify(group);

/**
 * The largest group comes first. Usage below zero has no share. If no group has usage above zero, the number of events
 * decides.
 */
export function breakDown<Group>(
  amount: Decimal,
  groups: readonly GroupUsage<Group>[],
  currency: string,
): GroupBreakdown<Group>[] {
  const byUsage = groups.map(({ usage }) => Decimal.max(ZERO, usage));
  const isUsed = byUsage.some((usage) => usage.gt(0));
  const weights = isUsed ? byUsage : groups.map(({ event_count }) => new Decimal(event_count));
  const whole = sumDecimals(weights);
  const ordered = groups
    .map((one, index) => ({ one, weight: weights[index]! }))
    .toSorted((a, b) => b.weight.comparedTo(a.weight) || (toSortKey(a.one) < toSortKey(b.one) ? -1 : 1));
  const spreads = whole.gt(0);
  const costs = spreads
    ? spread(
        amount.abs(),
        ordered.map(({ weight }) => weight),
        currency,
      )
    : [];
  return ordered.map(({ one, weight }, index) => {
    const cost = costs[index] ?? ZERO;
    const share = spreads ? weight.times(100).dividedBy(whole) : ZERO;
    return {
      ...one,
      cost: amount.isNegative() ? cost.negated() : cost,
      percentage: share.toDecimalPlaces(PERCENT_DIGITS),
    };
  });
}
