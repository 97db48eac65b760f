/**
 * The clock of an IANA timezone as a list of intervals with one offset each, computed once and cached. Windows follow it
 * (docs/rules/windows.md, "Windows follow the local clock"), so every event needs it. A local time here is a number too:
 * the milliseconds at which a UTC clock shows the same digits.
 */
import { Temporal } from 'temporal-polyfill';
import { invalid } from '../error.ts';
import { HOUR_MS } from './durations.ts';
import type { Milliseconds } from './instant.ts';

/** Half-open interval [from, to) in which local time = instant + offset. */
type OffsetInterval = { readonly from: Milliseconds; readonly to: Milliseconds; readonly offset: number };

export function findOffsetInterval(timezone: string, instant: Milliseconds): OffsetInterval {
  const intervals = ensureIntervals(timezone);
  let low = 0;
  let high = intervals.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (intervals[middle]!.to > instant) high = middle;
    else low = middle + 1;
  }
  const found = intervals[low];
  if (found !== undefined && found.from <= instant) return found;
  const fresh = computeOffsetInterval(timezone, instant);
  intervals.splice(low, 0, fresh);
  return fresh;
}

export function toLocalMs(timezone: string, instant: Milliseconds): number {
  return instant + findOffsetInterval(timezone, instant).offset;
}

/** Largest offset of a time zone. No zone is, or was, further from UTC than this. */
const LARGEST_OFFSET = 16 * HOUR_MS;

/**
 * The first instant at which the clock shows this local time or a later one. If the clock is set back over it, this is
 * the earlier of two; if the clock is set forward over it, it is the moment of the change. A local day therefore starts
 * exactly once.
 */
export function firstInstantAt(timezone: string, localMs: Milliseconds): number {
  let interval = findOffsetInterval(timezone, localMs - LARGEST_OFFSET);
  for (;;) {
    const candidate = localMs - interval.offset;
    if (candidate < interval.from) return interval.from;
    if (candidate < interval.to) return candidate;
    interval = findOffsetInterval(timezone, interval.to);
  }
}

/**
 * The instant at which the clock shows this local time, the earlier of two. A time that a clock change skips moves later
 * by the skipped amount.
 */
export function instantAt(timezone: string, localMs: Milliseconds): number {
  const first = firstInstantAt(timezone, localMs);
  return toLocalMs(timezone, first) === localMs ? first : localMs - findOffsetInterval(timezone, first - 1).offset;
}

/** Accepts IANA names only: a fixed offset such as "+05:30" has no clock changes and is rejected. */
export function isTimezone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

export function checkTimezone(name: string, field = 'timezone'): string {
  if (!intervalsByZone.has(name) && !isTimezone(name))
    throw invalid(field, `${JSON.stringify(name)} is not an IANA timezone`);
  return name;
}

const intervalsByZone = new Map<string, OffsetInterval[]>();

/** Returns the list of intervals of a zone. Only an existing zone gets one: invented names must not fill the memory. */
function ensureIntervals(timezone: string): OffsetInterval[] {
  let intervals = intervalsByZone.get(timezone);
  if (intervals === undefined) {
    intervals = [];
    intervalsByZone.set(checkTimezone(timezone), intervals);
  }
  return intervals;
}

function computeOffsetInterval(timezone: string, instant: Milliseconds): OffsetInterval {
  const at = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(timezone);
  // `from` includes a change of offset at `instant` itself. `previous` finds only earlier changes, so the search starts a millisecond later.
  const previous = at.add({ milliseconds: 1 }).getTimeZoneTransition('previous');
  return {
    from: previous === null ? Number.NEGATIVE_INFINITY : previous.epochMilliseconds,
    to: at.getTimeZoneTransition('next')?.epochMilliseconds ?? Number.POSITIVE_INFINITY,
    offset: at.offsetNanoseconds / 1e6,
  };
}
