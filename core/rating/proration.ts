/**
 * Shares of a period: a fixed charge for less than its whole period, at its start or at its end, is multiplied by the served part
 * (docs/rules/proration.md, "A share of the whole period"). Usage is never prorated.
 *
 * A share is a fraction of milliseconds, so that multiplication precedes division and no precision is lost.
 */
import { Decimal } from '../foundation/decimal.ts';
import { roundMoney } from '../foundation/money.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import { type Period, type PeriodRule, wholePeriod } from '../foundation/time/period.ts';

/**
 * Charged part of a period: `part_ms` of `whole_ms`; both are equal for a whole period. `before_ms` is the time in the period before the
 * part, from the start of the service.
 */
export type ProrationShare = { readonly part_ms: number; readonly whole_ms: number; readonly before_ms?: number };

/**
 * Share of its regular period that a service period covers, at most all of it. `since` is the start of service in the
 * period.
 */
export function computeShare(service: Period, regular: Period, since: Milliseconds = service.start): ProrationShare {
  const whole_ms = regular.end - regular.start;
  const part_ms = Math.min(service.end - service.start, whole_ms);
  const before_ms = service.start - Math.max(regular.start, since);
  return before_ms > 0 ? { part_ms, whole_ms, before_ms } : { part_ms, whole_ms };
}

/**
 * Cost of a part: the rounded cost of the period until the end of the part, less the rounded cost until its start. So parts add up to the
 * whole, however it is cut (docs/rules/proration.md, "Parts add up").
 */
export function roundedShare(charge: Decimal, share: ProrationShare, currency: string): Decimal {
  const { part_ms, whole_ms, before_ms = 0 } = share;
  const until = (ms: number) => roundMoney(prorate(charge, { part_ms: ms, whole_ms }), currency);
  return before_ms === 0 ? until(part_ms) : until(before_ms + part_ms).minus(until(before_ms));
}

/** Share that remains of `whole` after its first part `served`. */
export function computeRemainingShare(whole: ProrationShare, served: ProrationShare | undefined): ProrationShare {
  if (!served) return whole;
  const { whole_ms, before_ms = 0 } = whole;
  return { part_ms: whole.part_ms - served.part_ms, whole_ms, before_ms: before_ms + served.part_ms };
}

/** The computed charge × the share, unrounded. */
export function prorate(charge: Decimal, share: ProrationShare): Decimal {
  return isWhole(share) ? charge : charge.times(share.part_ms).dividedBy(share.whole_ms);
}

export function isWhole(share: ProrationShare): boolean {
  return share.part_ms === share.whole_ms;
}

/** The share as text for a line's `computed_from`; null if all of the period was charged. */
export function shareText(share: ProrationShare): string | null {
  return isWhole(share) ? null : new Decimal(share.part_ms).dividedBy(share.whole_ms).toDecimalPlaces(18).toFixed();
}

/**
 * The regular period of a period: the period that a full charge would pay for. A short first period belongs to the whole one that ends with
 * it. A period that was cut at its end belongs to the one that would have continued (docs/rules/proration.md, "A share of the whole
 * period").
 */
export function regularPeriod(period: Period, rule: PeriodRule): Period {
  const whole = wholePeriod({ ...rule, period_start: period.start });
  return { start: whole.start, end: Math.max(whole.end, period.end) };
}
