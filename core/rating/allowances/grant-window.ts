/** Computes when a grant begins and ends (docs/rules/entitlements.md, "Grants"). */

import type { GRANT_ALLOCATIONS, GRANT_DURATION_UNITS } from '../../catalog/entitlement/grant-record.ts';
import { DAY_MS, HOUR_MS } from '../../foundation/time/durations.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { windowStart } from '../../foundation/time/window.ts';
import { instantAt, toLocalMs } from '../../foundation/time/zone.ts';

/** A grant lasts the whole billing period, or a number of hours, days or weeks within it. */
export type GrantDuration =
  | { readonly unit: 'subscription_period' }
  | {
      readonly unit: Exclude<(typeof GRANT_DURATION_UNITS)[number], 'subscription_period'>;
      readonly value: number;
      readonly allocation: (typeof GRANT_ALLOCATIONS)[number];
    };

/**
 * Input for the window of the next grant. `cycle` is the billing period. `free_from` is the earliest start of that
 * window: the end of the preceding grant, or the start of the cycle.
 */
type GrantOpening = { readonly cycle: Period; readonly free_from: Milliseconds; readonly timezone: string };

/** Window of the grant that usage at `at` opens if no grant is open. */
export function computeGrantWindow(
  at: Milliseconds,
  duration: GrantDuration,
  { cycle, free_from, timezone }: GrantOpening,
): Period {
  if (duration.unit === 'subscription_period') return cycle;
  const start =
    duration.allocation === 'first_usage'
      ? at
      : Math.max(free_from, windowStart(at, SIZES[duration.unit], { timezone }));
  return { start, end: Math.min(cycle.end, addGrantDuration(start, duration, timezone)) };
}

const SIZES = { hour: 'HOUR', day: 'DAY', week: 'WEEK' } as const;

/** Hours are elapsed time. Days and weeks end at the same local time, also across a clock change. */
function addGrantDuration(
  start: Milliseconds,
  { unit, value }: Exclude<GrantDuration, { unit: 'subscription_period' }>,
  timezone: string,
): Milliseconds {
  if (unit === 'hour') return start + value * HOUR_MS;
  const days = unit === 'day' ? value : value * 7;
  return instantAt(timezone, toLocalMs(timezone, start) + days * DAY_MS);
}
