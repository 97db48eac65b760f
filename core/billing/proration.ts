/**
 * Shares of a period: a fixed charge for less than its whole period, at its start or at its end, is multiplied by the part
 * that is served (docs/rules/proration.md, "A share of the whole period"). Usage is never prorated.
 *
 * A share is kept as a fraction of milliseconds, so that multiplying comes before dividing and nothing is lost.
 */
import { Decimal } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import type { Milliseconds } from '../time/instant.ts';
import { type Period, type PeriodRule, wholePeriod } from '../time/period.ts';

/** `part_ms` of `whole_ms`; equal when all of the period is charged. `before_ms`: what was, or could be, served of it before the part. */
export type ProrationShare = { readonly part_ms: number; readonly whole_ms: number; readonly before_ms?: number };

/** How much of its regular period a service period takes up: never more than all of it. `since`: from when on the period is served. */
export function computeShare(service: Period, regular: Period, since: Milliseconds = service.start): ProrationShare {
  const whole_ms = regular.end - regular.start;
  const part_ms = Math.min(service.end - service.start, whole_ms);
  const before_ms = service.start - Math.max(regular.start, since);
  return before_ms > 0 ? { part_ms, whole_ms, before_ms } : { part_ms, whole_ms };
}

/**
 * What a part costs: what the period costs until the end of the part less what it costs until its beginning, each rounded. So parts add
 * up to the whole, whatever comes between them (docs/rules/proration.md, "Parts add up").
 */
export function roundedShare(charge: Decimal, share: ProrationShare, currency: string): Decimal {
  const { part_ms, whole_ms, before_ms = 0 } = share;
  const until = (ms: number) => roundMoney(prorate(charge, { part_ms: ms, whole_ms }), currency);
  return before_ms === 0 ? until(part_ms) : until(before_ms + part_ms).minus(until(before_ms));
}

/** What follows a part, to the end of another that begins where it does. */
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

/** The share as text for what a line was computed from; null when all of the period was charged. */
export function shareText(share: ProrationShare): string | null {
  return isWhole(share) ? null : new Decimal(share.part_ms).dividedBy(share.whole_ms).toDecimalPlaces(18).toFixed();
}

/**
 * The regular period that a period belongs to: what would have been charged in full. A short first period belongs to the
 * whole one that ends with it, a period that was cut at its end to the one that would have run on
 * (docs/rules/proration.md, "A share of the whole period").
 */
export function regularPeriod(period: Period, rule: PeriodRule): Period {
  const whole = wholePeriod({ ...rule, period_start: period.start });
  return { start: whole.start, end: Math.max(whole.end, period.end) };
}
