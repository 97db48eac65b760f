/**
 * The commitment of a subscription as a whole (docs/rules/commitments.md, "Of a subscription"): what its usage lines cost is
 * drawn from one committed amount, and what is above is a line of its own beside each. Of one billing period the lines draw in
 * their order; of a longer term each has its share of what is left. What is lacking at the end is a line of its own.
 */
import {
  type BilledItem,
  type BilledSubscription,
  computeSharesWithin,
  periodRule,
  serviceStart,
} from '../billing/charges.ts';
import { applyPeriodGridAt, periodGridEnd, splitByPeriodGrid } from '../billing/earlier-periods.ts';
import { Decimal, sumDecimals } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import { spread } from '../spread.ts';
import type { Milliseconds } from '../time/instant.ts';
import { type Period, periodContaining, type RecurringPeriod } from '../time/period.ts';
import type { RecordedUsage } from './part.ts';
import { type CommitmentPool, drawFrom, lackingAmount } from './pool.ts';
import { computeTerm } from './term.ts';

export type SubscriptionCommitment = {
  readonly amount: Decimal;
  readonly overage_factor: Decimal;
  readonly true_up: boolean;
  /** Longer than the billing period; null is the billing period. */
  readonly duration: RecurringPeriod | null;
};

export type PoolFacts = {
  readonly subscription: BilledSubscription;
  readonly commitment: SubscriptionCommitment;
  /** Usage charges on invoices, of services that have ended by the period that is computed. */
  readonly recorded: readonly RecordedUsage[];
  /** Services whose lacking amount was charged. */
  readonly true_ups: readonly Period[];
};

/** Where a term lies that a service is drawn from: the one in which it is billed. */
export function deriveServiceTerm(
  service: Period,
  { subscription, commitment }: Omit<PoolFacts, 'recorded' | 'true_ups'>,
): Period {
  const at = Math.max(subscription.start_ms, service.end - 1);
  const { duration } = commitment;
  const then = applyPeriodGridAt(subscription, at);
  const billed = periodContaining(at, then.start_ms, { ...periodRule(then), subscription_end: null })!;
  // What began anew inside a period cut it.
  if (duration === null)
    return { start: billed.start, end: Math.min(billed.end, periodGridEnd(subscription, at) ?? billed.end) };
  // A term ends with the billing period in which its duration is over, also where the two do not begin at one instant.
  return computeTerm(billed.start, { since: serviceStart(subscription), duration, timezone: subscription.timezone });
}

/** The committed amount of a term with what was drawn from it so far. */
export function computePool(term: Period, facts: PoolFacts): CommitmentPool {
  const { subscription, commitment, recorded, true_ups } = facts;
  const isIn = (service: Period) => deriveServiceTerm(service, facts).start === term.start;
  return {
    amount: commitment.duration === null ? computeAmountIn(term, subscription, commitment) : commitment.amount,
    overage_factor: commitment.overage_factor,
    used: sumDecimals(recorded.filter(({ service }) => isIn(service)).map(({ base_amount }) => base_amount)),
    is_trued_up: true_ups.some(isIn),
  };
}

/** What is committed to in a stretch of time: its share of each billing period. */
export function computeAmountIn(
  interval: Period,
  subscription: BilledSubscription,
  { amount }: SubscriptionCommitment,
): Decimal {
  const shares = splitByPeriodGrid(interval, subscription).map(([part, then]) =>
    computeSharesWithin(part, asItem(then), then),
  );
  return amount.times(sumDecimals(shares));
}

/** As an advance charge would be: nothing is committed to in a trial. */
function asItem(subscription: BilledSubscription): BilledItem {
  const start_ms = serviceStart(subscription);
  return {
    ...subscription,
    id: '',
    price_type: 'FIXED',
    invoice_cadence: 'ARREAR',
    start_ms,
    end_ms: null,
    reset_usage: null,
  };
}

/** Of one line's charge: what lies within the commitment, and what above costs, before and after the factor. */
export type PoolShare = { readonly within: Decimal; readonly above: Decimal; readonly overage: Decimal };

export type PoolShares = { readonly shares: readonly PoolShare[]; readonly left: CommitmentPool };

/** Rounded amounts of lines, each drawn from the pool: no part of one is below 0 or above it (docs/rules/numbers.md, "Spreading an amount"). */
export function shareOut(
  amounts: readonly Decimal[],
  pool: CommitmentPool,
  { currency, in_order }: { currency: string; in_order: boolean },
): PoolShares {
  const amount = roundMoney(pool.amount, currency);
  // A correction that was given back in part has drawn a fraction of a minor unit.
  const rounded = { ...pool, amount, used: roundMoney(pool.used, currency) };
  const total = drawFrom(rounded, sumDecimals(amounts));
  const within = in_order
    ? drawInSequence(amounts, rounded)
    : spread(sumDecimals(amounts).minus(total.above), amounts, currency);
  const above = amounts.map((one, index) => one.minus(within[index]!));
  const overage = spread(roundMoney(total.overage, currency), above, currency);
  const shares = amounts.map((_one, index) => ({
    within: within[index]!,
    above: above[index]!,
    overage: overage[index]!,
  }));
  return { shares, left: drawFrom({ ...pool, amount }, sumDecimals(amounts)).left };
}

function drawInSequence(amounts: readonly Decimal[], pool: CommitmentPool): Decimal[] {
  let left = pool;
  return amounts.map((amount) => {
    const drawn = drawFrom(left, amount);
    left = drawn.left;
    return amount.minus(drawn.above);
  });
}

/** What is lacking at the end of a term; null where nothing is charged for it. */
export function computeTrueUp(
  pool: CommitmentPool,
  { true_up }: SubscriptionCommitment,
  currency: string,
): Decimal | null {
  if (!true_up || pool.is_trued_up) return null;
  const lacking = roundMoney(lackingAmount({ ...pool, amount: roundMoney(pool.amount, currency) }), currency);
  return lacking.isZero() ? null : lacking;
}

/** Whether the term is over with a period, or the subscription with both. */
export function endsWith(term: Period, period: Period, ends: readonly (Milliseconds | null | undefined)[]): boolean {
  return Math.min(term.end, ...ends.map((end) => end ?? Infinity)) <= period.end;
}
