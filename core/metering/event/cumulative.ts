/**
 * Turns the values of a cumulative series into deltas (docs/rules/opentelemetry.md, "Cumulative temporality"). A series has one start time; a
 * process that restarts begins another series.
 */
import { Decimal } from '../../foundation/decimal.ts';
import { DAY_MS } from '../../foundation/time/durations.ts';

/** A value since the start of its series. `count` is that of a histogram. */
export type CumulativePoint = {
  readonly start_nano: bigint;
  readonly time_nano: bigint;
  readonly value: string;
  readonly count: string | null;
};

/** Last value of a series; null before its first. With `rebase` a later value replaces it without being counted, as after a restore. */
export type SeriesState =
  | (Pick<CumulativePoint, 'time_nano' | 'value' | 'count'> & { readonly rebase?: boolean })
  | null;

/** The usage since the state. `advance` says whether the state must be stored. */
type SeriesStep =
  | { readonly kind: 'delta'; readonly value: string; readonly count: string | null }
  | { readonly kind: 'baseline' }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'fault'; readonly why: string };

/**
 * Age of a start time up to which an unknown series is accepted. States are stored for longer (`SERIES_RETENTION_DAYS`), so a series whose
 * state was deleted is older than this and never counts twice.
 */
const UNKNOWN_START_DAYS = 90;
export const SERIES_RETENTION_DAYS = 100;
const NANO_PER_DAY = BigInt(DAY_MS) * 1_000_000n;

/** Finds the reason why no series can have this point; undefined if there is none. */
export function findSeriesFault({ start_nano, time_nano }: CumulativePoint): string | undefined {
  if (start_nano === 0n)
    return 'startTimeUnixNano is required of a cumulative metric: without it a restart cannot be seen';
  return time_nano < start_nano ? 'timeUnixNano lies before startTimeUnixNano' : undefined;
}

export function advanceSeries(state: SeriesState, point: CumulativePoint, now: Date): SeriesStep {
  const { start_nano, time_nano, value, count } = point;
  if (state === null) {
    if (start_nano < BigInt(now.getTime()) * 1_000_000n - BigInt(UNKNOWN_START_DAYS) * NANO_PER_DAY)
      return {
        kind: 'fault',
        why: `began more than ${UNKNOWN_START_DAYS} days ago and is not known here: restart its process`,
      };
    // A first point of no length has what came before an unknown start (OpenTelemetry's data model, "Resets and gaps").
    if (start_nano === time_nano) return { kind: 'baseline' };
    return isZero(value) && isZero(count) ? { kind: 'baseline' } : { kind: 'delta', value, count };
  }
  if (time_nano <= state.time_nano) return { kind: 'nothing' };
  if (state.rebase) return { kind: 'baseline' };
  const added = {
    value: subtract(value, state.value),
    count: count === null ? null : subtract(count, state.count ?? '0'),
  };
  if (added.value.startsWith('-') || added.count?.startsWith('-'))
    return {
      kind: 'fault',
      why: 'fell, and its startTimeUnixNano is the same: does each process have its own service.instance.id?',
    };
  return isZero(added.value) && isZero(added.count) ? { kind: 'nothing' } : { kind: 'delta', ...added };
}

const isZero = (value: string | null) => value === null || new Decimal(value).isZero();

const subtract = (value: string, before: string) => new Decimal(value).minus(before).toFixed();
