/**
 * Shares of a period: "Use exact seconds, end exclusive"; "First period: only calendar billing shortens the first
 * period; ADVANCE fixed charge = full × (period_end − start)/(full calendar period). With anniversary + later anchor the
 * first period is short, and also prorate it" (pricing-and-invoicing §2.5; decisions §22). Usage is never prorated.
 *
 * A share is kept as a fraction of milliseconds, so that multiplying comes before dividing and nothing is lost.
 */
import { Temporal } from 'temporal-polyfill';
import { Decimal } from '../decimal.ts';
import { nextPeriodEnd, type Period, type PeriodRule } from '../time/period.ts';

/** `part_ms` of `whole_ms`; equal when all of the period is charged. */
export type Share = { readonly part_ms: number; readonly whole_ms: number };

/** How much of its regular period a service period takes up: never more than all of it. */
export function shareOf(service: Period, regular: Period): Share {
  const whole_ms = regular.end - regular.start;
  return { part_ms: Math.min(service.end - service.start, whole_ms), whole_ms };
}

/** The computed charge × the share, unrounded. */
export function prorate(charge: Decimal, share: Share): Decimal {
  return isWhole(share) ? charge : charge.times(share.part_ms).dividedBy(share.whole_ms);
}

export function isWhole(share: Share): boolean {
  return share.part_ms === share.whole_ms;
}

/** The share as text for what a line was computed from; null when all of the period was charged. */
export function shareText(share: Share): string | null {
  return isWhole(share) ? null : new Decimal(share.part_ms).dividedBy(share.whole_ms).toDecimalPlaces(18).toFixed();
}

/**
 * The regular period that a period belongs to: what would have been charged in full. A first period that the anchor
 * shortens belongs to the one that would have begun a whole period before its end; a period that was cut at its end
 * belongs to the one that would have run on.
 */
export function regularPeriod(period: Period, rule: PeriodRule): Period {
  const end = Math.max(nextPeriodEnd({ ...rule, subscription_end: null, period_start: period.start }), period.end);
  return { start: Math.min(regularStart(end, rule), period.start), end };
}

/** Where a whole period that ends here begins: the mirror of `nextPeriodEnd` for ends that lie on the anchor's grid. */
function regularStart(end: number, rule: PeriodRule): number {
  const last = localTime(end, rule.timezone);
  const anchor = localTime(rule.billing_anchor, rule.timezone);
  const date = startDate(last.toPlainDate(), anchor.toPlainDate(), rule);
  if (date.equals(anchor.toPlainDate())) return rule.billing_anchor;
  return date.toZonedDateTime({ timeZone: rule.timezone, plainTime: anchor.toPlainTime() }).epochMilliseconds;
}

const MONTHS: Partial<Record<PeriodRule['billing_period'], number>> = {
  MONTHLY: 1,
  QUARTERLY: 3,
  HALF_YEARLY: 6,
  ANNUAL: 12,
};

function startDate(end: Temporal.PlainDate, anchor: Temporal.PlainDate, rule: PeriodRule): Temporal.PlainDate {
  const count = rule.billing_period_count;
  const months = MONTHS[rule.billing_period];
  if (months === undefined) return end.subtract({ days: rule.billing_period === 'WEEKLY' ? 7 * count : count });
  // The anchor's day is taken anew: the month before a clamped 28 February began on the 31st.
  return end
    .toPlainYearMonth()
    .subtract({ months: months * count })
    .toPlainDate({ day: anchor.day });
}

function localTime(instant: number, timezone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
}
