/** The operations of the areas billing_period.*, usage_window.* and proration.calendar_days on core/foundation/time/. */
import { z } from 'zod';
import { anyCase } from '../../core/foundation/record.ts';
import { formatMs, parseInstant } from '../../core/foundation/time/instant.ts';
import { calendarAnchor, calendarDays, nextPeriodEnd, RECURRING_PERIODS } from '../../core/foundation/time/period.ts';
import { WINDOW_SIZES, windowStarts } from '../../core/foundation/time/window.ts';

export const instant = z.string().transform((text, context) => {
  const found = parseInstant(text);
  if (found === undefined) context.addIssue(`${text} is not a timestamp`);
  return found ?? 0;
});
const timezone = z.string().default('UTC');
const count = z.coerce.number();
const billing_period = anyCase(RECURRING_PERIODS);

export function periodEnd(given: unknown) {
  const rule = z
    .object({
      billing_period,
      billing_period_count: count,
      period_start: instant,
      billing_anchor: instant,
      timezone,
      subscription_end: instant.nullish(),
    })
    .parse(given);
  return { period_end: formatMs(nextPeriodEnd(rule)) };
}

export function anchor(given: unknown) {
  const stated = z.object({ billing_period, start: instant, timezone }).parse(given);
  return { billing_anchor: formatMs(calendarAnchor(stated.start, stated.billing_period, stated.timezone)) };
}

export function starts(given: unknown) {
  const stated = z
    .object({
      window_size: anyCase(WINDOW_SIZES),
      range_start: instant,
      range_end: instant,
      billing_anchor: instant.nullish(),
      timezone,
    })
    .parse(given);
  const { range_start, range_end, window_size, ...grid } = stated;
  return { window_starts: windowStarts(range_start, range_end, window_size, grid).map(formatMs) };
}

export function daysBetween(given: unknown) {
  const { start, end, timezone: zone } = z.object({ start: instant, end: instant, timezone }).parse(given);
  return { days: calendarDays(start, end, zone) };
}

export function grantPeriodEnd(given: unknown) {
  const { start, period, period_count } = z
    .object({ start: instant, period: billing_period, period_count: count })
    .parse(given);
  const rule = { billing_period: period, billing_period_count: period_count, timezone: 'UTC' };
  return { period_end: formatMs(nextPeriodEnd({ ...rule, period_start: start, billing_anchor: start })) };
}
