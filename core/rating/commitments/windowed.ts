/**
 * A commitment for each window of a meter, and times of day with their own commitments (docs/rules/commitments.md, "Windows and times of
 * day"). A window belongs to the time of day in which it begins, in the timezone of the subscription. Outside of all times of day the
 * commitment of the line applies; without one, usage has its normal cost. With a true-up, a window without usage is charged its shortfall
 * as soon as it is over. A window that the charge covers only in part has that share of its commitment.
 */

import type { TimeBucket } from '../../catalog/price/time-buckets.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../../catalog/pricing/charge.ts';
import type { ChargePart } from '../../catalog/pricing/terms.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { DAY_MINUTES, MINUTE_MS } from '../../foundation/time/durations.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import { listWindows, type UsageWindow, windowAt } from '../../foundation/time/window.ts';
import { toLocalMs } from '../../foundation/time/zone.ts';
import { committedAmount, type LineCommitment } from './line.ts';
import { addCharged, applyCommitment, type CommittedAmount, type CommittedCharge, NOTHING } from './pool.ts';

type WindowedChargeInput = {
  readonly commitment: LineCommitment & { readonly windows: NonNullable<LineCommitment['windows']> };
  readonly price: PriceTerms;
  readonly range: Period;
  /** Windows that end later than this instant are not over yet. */
  readonly over_until: Milliseconds;
  /** For each window with usage: an instant in it, and the value of each group. */
  readonly used: readonly { readonly at: Milliseconds; readonly values: readonly Decimal[] }[];
};

export type WindowedCharge = CommittedCharge & {
  /** Cost of the usage before any commitment. */
  readonly base: Decimal;
  /** Charge parts with the id of the time of day whose price applies; null for the line's own price. */
  readonly parts: readonly { readonly time_bucket: string | null; readonly part: ChargePart }[];
  /** Charge of each time of day with usage or shortfall. The key null holds the charge outside of all times of day. */
  readonly by_time: ReadonlyMap<TimeBucket | null, TimeOfDayCharge>;
};

type TimeOfDayCharge = CommittedCharge & {
  readonly quantity: Decimal;
  /** Cost before any commitment. */
  readonly base: Decimal;
};

type WindowTerms = {
  readonly bucket: TimeBucket | null;
  readonly price: PriceTerms;
  readonly committed: CommittedAmount | null;
};

export function windowedCharge(input: WindowedChargeInput): WindowedCharge {
  const { commitment, range, used } = input;
  const termsAt = buildTermsLookup(input);
  const parts: { time_bucket: string | null; part: ChargePart }[] = [];
  const seen = new Set<Milliseconds>();
  const by_time = new Map<TimeBucket | null, TimeOfDayCharge>();
  for (const { at, values } of used) {
    const window = windowAt(Math.max(at, range.start), commitment.windows.size, commitment.windows);
    seen.add(window.start);
    const terms = termsAt(window.start);
    const of = values.flatMap((value) => chargeParts(terms.price, billedQuantity(value)));
    for (const part of of) parts.push({ time_bucket: terms.bucket?.id ?? null, part });
    const usage = sumDecimals(of.map((part) => part.amount));
    addTo(by_time, terms, {
      quantity: sumDecimals(values),
      base: usage,
      ...computeWindowCharge(usage, terms, shareIn(range, window)),
    });
  }
  for (const { window, terms } of emptyWindows(input, { seen, termsAt }))
    addTo(by_time, terms, { quantity: ZERO, base: ZERO, ...computeWindowCharge(ZERO, terms, shareIn(range, window)) });
  const all = [...by_time.values()];
  return { ...all.reduce(addCharged, NOTHING), base: sumDecimals(all.map((one) => one.base)), parts, by_time };
}

function addTo(by_time: Map<TimeBucket | null, TimeOfDayCharge>, { bucket }: WindowTerms, one: TimeOfDayCharge): void {
  const before = by_time.get(bucket);
  const { quantity, base } = one;
  if (before === undefined) by_time.set(bucket, one);
  else
    by_time.set(bucket, {
      ...addCharged(before, one),
      quantity: before.quantity.plus(quantity),
      base: before.base.plus(base),
    });
}

function computeWindowCharge(usage: Decimal, { committed }: WindowTerms, share: Decimal): CommittedCharge {
  if (committed === null) return { ...NOTHING, charge: usage };
  return applyCommitment(usage, { ...committed, amount: committed.amount.times(share) });
}

function* emptyWindows(
  { commitment, range, over_until }: WindowedChargeInput,
  { seen, termsAt }: { seen: ReadonlySet<Milliseconds>; termsAt: (at: Milliseconds) => WindowTerms },
): Generator<{ window: UsageWindow; terms: WindowTerms }> {
  if (!commitment.true_up && !commitment.time_buckets.some((bucket) => bucket.true_up_enabled)) return;
  const until = Math.min(range.end, over_until);
  if (until <= range.start) return;
  for (const window of listWindows(range.start, until, commitment.windows.size, commitment.windows)) {
    if (seen.has(window.start) || Math.min(window.end, range.end) > until) continue;
    const terms = termsAt(window.start);
    if (terms.committed?.true_up) yield { window, terms };
  }
}

/** Returns a lookup of the terms for the window that begins at an instant. */
function buildTermsLookup({ commitment, price }: WindowedChargeInput): (at: Milliseconds) => WindowTerms {
  const { type, value, overage_factor, true_up, time_buckets, windows } = commitment;
  const amount = value === null ? null : committedAmount(type, value, price);
  const own: WindowTerms = { bucket: null, price, committed: amount && { amount, overage_factor, true_up } };
  if (time_buckets.length === 0) return () => own;
  const placed = time_buckets.map((bucket) => ({ ...toMinuteRange(bucket), terms: toBucketTerms(bucket, price) }));
  return (at) => {
    const minute = Math.floor(toLocalMs(windows.timezone, at) / MINUTE_MS) % DAY_MINUTES;
    const found = placed.find(
      ({ from, until }) => isIn(minute, from, until) || isIn(minute + DAY_MINUTES, from, until),
    );
    return found?.terms ?? own;
  };
}

const isIn = (minute: number, from: number, until: number) => from <= minute && minute < until;

function toMinuteRange({ start, end }: TimeBucket): { from: number; until: number } {
  const from = start.hour * 60 + start.minute;
  const until = end.hour * 60 + end.minute;
  return { from, until: until > from ? until : until + DAY_MINUTES };
}

function toBucketTerms(bucket: TimeBucket, own: PriceTerms): WindowTerms {
  const price = bucket.price === null ? own : { ...bucket.price, currency: own.currency };
  const amount = committedAmount(bucket.commitment_type, new Decimal(bucket.commitment_value), price);
  const overage_factor = new Decimal(bucket.overage_factor);
  return { bucket, price, committed: { amount, overage_factor, true_up: bucket.true_up_enabled } };
}

function shareIn(range: Period, { start, end }: UsageWindow): Decimal {
  const part = Math.min(end, range.end) - Math.max(start, range.start);
  return new Decimal(part).dividedBy(end - start);
}
