/**
 * The commitment of a subscription as a whole (docs/rules/commitments.md, "Of a subscription"). The cost of its usage lines draws from one
 * committed amount, and the overage of each is a separate line. For one billing period, lines draw in their order; for a longer term, the
 * remaining amount is divided between them. The shortfall at the end is a separate line.
 */

import { Decimal, sumDecimals } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { spread } from '../../foundation/spread.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import { type Period, periodContaining, type RecurringPeriod } from '../../foundation/time/period.ts';
import { type BilledItem, type BilledSubscription, computeSharesWithin, periodRule, serviceStart } from '../charges.ts';
import { applyPeriodGridAt, periodGridEnd, splitByPeriodGrid } from '../earlier-periods.ts';
import type { RecordedUsage } from './part.ts';
import { type CommitmentPool, drawFrom, lackingAmount } from './pool.ts';
import { computeTerm } from './term.ts';

export type SubscriptionCommitment = {
  readonly amount: Decimal;
  readonly overage_factor: Decimal;
  readonly true_up: boolean;
  /** Duration, if it is longer than the billing period; null means one billing period. */
  readonly duration: RecurringPeriod | null;
};

export type PoolFacts = {
  readonly subscription: BilledSubscription;
  readonly commitment: SubscriptionCommitment;
  /** Invoiced usage charges whose service ends by the end of the period that is computed. */
  readonly recorded: readonly RecordedUsage[];
  /** Service periods whose true-up was charged. */
  readonly true_ups: readonly Period[];
};

/** Derives the term from whose amount a service draws: the term in which the service is billed. */
export function deriveServiceTerm(
  service: Period,
  { subscription, commitment }: Omit<PoolFacts, 'recorded' | 'true_ups'>,
): Period {
  const at = Math.max(subscription.start_ms, service.end - 1);
  const { duration } = commitment;
  const then = applyPeriodGridAt(subscription, at);
  const billed = periodContaining(at, then.start_ms, { ...periodRule(then), subscription_end: null })!;
  // If the periods of the subscription were re-anchored inside this period, the period ends there.
  if (duration === null)
    return { start: billed.start, end: Math.min(billed.end, periodGridEnd(subscription, at) ?? billed.end) };
  // A term ends with the billing period in which its duration ends, even if term and billing periods do not begin at one instant.
  return computeTerm(billed.start, { since: serviceStart(subscription), duration, timezone: subscription.timezone });
}

/** The committed amount of a term with its draws so far. */
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

/** Committed amount for an interval: its share of each billing period. */
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

/** Item with the subscription's periods, for computing shares. It starts after the trial, in which nothing is committed. */
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

/** Cost of one line within the committed amount, above it, and above it times the overage factor (`overage`). */
export type PoolShare = { readonly within: Decimal; readonly above: Decimal; readonly overage: Decimal };

type PoolShares = { readonly shares: readonly PoolShare[]; readonly left: CommitmentPool };

/**
 * Splits rounded line amounts into the parts within and above the committed amount. Each part is between 0 and the amount of its line
 * (docs/rules/numbers.md, "Spreading an amount").
 */
export function shareOut(
  amounts: readonly Decimal[],
  pool: CommitmentPool,
  { currency, in_order }: { currency: string; in_order: boolean },
): PoolShares {
  const amount = roundMoney(pool.amount, currency);
  // The used amount may have a fraction of a minor unit, because a correction may have been credited in part.
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

/** Shortfall at the end of a term; null if none is charged. */
export function computeTrueUp(
  pool: CommitmentPool,
  { true_up }: SubscriptionCommitment,
  currency: string,
): Decimal | null {
  if (!true_up || pool.is_trued_up) return null;
  const lacking = roundMoney(lackingAmount({ ...pool, amount: roundMoney(pool.amount, currency) }), currency);
  return lacking.isZero() ? null : lacking;
}

/** Whether the term, or the subscription, ends by the end of a period. */
export function endsWith(term: Period, period: Period, ends: readonly (Milliseconds | null | undefined)[]): boolean {
  return Math.min(term.end, ...ends.map((end) => end ?? Infinity)) <= period.end;
}
