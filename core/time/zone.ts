/**
 * The clock of an IANA timezone as a list of stretches with one offset each, found once and kept. Windows follow it
 * (docs/rules/windows.md, "Windows follow the local clock"), so this is asked for every event. A wall time here is a number
 * too: the milliseconds that a UTC clock would need to show the same digits.
 */
import { Temporal } from 'temporal-polyfill';
import { invalid } from '../error.ts';
import type { Milliseconds } from './instant.ts';

/** Half-open [from, to): in it, wall time = instant + offset. */
export type OffsetInterval = { readonly from: Milliseconds; readonly to: Milliseconds; readonly offset: number };

/** The stretch that holds the instant. */
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

/** No zone is, or was, further than this from UTC. */
const LARGEST_OFFSET = 16 * 3_600_000;

/**
 * The first instant at which the clock shows this wall time or a later one: the earlier of two when the clock is set
 * back over it, the moment of the change when the clock is set forward over it. So a local day starts exactly once.
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

/** The instant at which the clock shows this wall time: the earlier of two, and of a time that a change skips as much later as it skips. */
export function instantAt(timezone: string, localMs: Milliseconds): number {
  const first = firstInstantAt(timezone, localMs);
  return toLocalMs(timezone, first) === localMs ? first : localMs - findOffsetInterval(timezone, first - 1).offset;
}

/** IANA names only: a fixed offset such as "+05:30" has no clock changes to honour and is refused. */
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

/** Only a zone that exists gets a list: what a caller makes up must not fill the memory. */
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
  // `previous` looks strictly before its instant, and a change at this very instant has already happened.
  const previous = at.add({ milliseconds: 1 }).getTimeZoneTransition('previous');
  return {
    from: previous === null ? Number.NEGATIVE_INFINITY : previous.epochMilliseconds,
    to: at.getTimeZoneTransition('next')?.epochMilliseconds ?? Number.POSITIVE_INFINITY,
    offset: at.offsetNanoseconds / 1e6,
  };
}
