/**
 * A commitment of each window of a meter, with times of day that have one of their own (docs/rules/commitments.md, "Windows and
 * times of day"). A window belongs to the time of day in which it begins, by the clock of the subscription; outside of them the
 * line's own commitment holds, and where it has none the price alone. Windows without usage count where what is lacking is
 * charged, as soon as they are over. One that the charge holds in part has that part of its commitment.
 */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import type { TimeBucket } from '../price/time-buckets.ts';
import { billedQuantity, chargeParts, type PriceTerms } from '../pricing/charge.ts';
import type { ChargePart } from '../pricing/terms.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import { type Window, windowAt, windowsOf } from '../time/window.ts';
import { wallTime } from '../time/zone.ts';
import { committedAmount, type LineCommitment } from './line.ts';
import { addCharged, applyCommitment, type Charged, type Committed, NOTHING } from './pool.ts';

export type WindowedQuestion = {
  readonly commitment: LineCommitment & { readonly windows: NonNullable<LineCommitment['windows']> };
  readonly price: PriceTerms;
  /** The time that is charged. */
  readonly range: Period;
  /** Windows that end later are not over yet. */
  readonly over_until: Milliseconds;
  /** Of each window with usage: an instant of it, and the value of each group. */
  readonly used: readonly { readonly at: Milliseconds; readonly values: readonly Decimal[] }[];
};

export type WindowedCharge = Charged & {
  /** What the usage costs before any commitment. */
  readonly base: Decimal;
  /** By the time of day whose price it is; null is the line's own. */
  readonly parts: readonly { readonly time_bucket: string | null; readonly part: ChargePart }[];
  /** The same of each time of day in which something was used or lacking; of null where none holds. */
  readonly by_time: ReadonlyMap<TimeBucket | null, TimeOfDayCharge>;
};

export type TimeOfDayCharge = Charged & {
  readonly quantity: Decimal;
  /** Before any commitment. */
  readonly base: Decimal;
};

type Terms = { readonly bucket: TimeBucket | null; readonly price: PriceTerms; readonly committed: Committed | null };

export function windowedCharge(question: WindowedQuestion): WindowedCharge {
  const { commitment, range, used } = question;
  const termsAt = termsOf(question);
  const parts: { time_bucket: string | null; part: ChargePart }[] = [];
  const seen = new Set<Milliseconds>();
  const by_time = new Map<TimeBucket | null, TimeOfDayCharge>();
  for (const { at, values } of used) {
    const window = windowAt(Math.max(at, range.start), commitment.windows.size, commitment.windows);
    seen.add(window.start);
    const terms = termsAt(window.start);
    const of = values.flatMap((value) => chargeParts(terms.price, billedQuantity(value)));
    for (const part of of) parts.push({ time_bucket: terms.bucket?.id ?? null, part });
    const usage = sumOf(of.map((part) => part.amount));
    addTo(by_time, terms, { quantity: sumOf(values), base: usage, ...chargeOf(usage, terms, shareIn(range, window)) });
  }
  for (const { window, terms } of emptyWindows(question, { seen, termsAt }))
    addTo(by_time, terms, { quantity: ZERO, base: ZERO, ...chargeOf(ZERO, terms, shareIn(range, window)) });
  const all = [...by_time.values()];
  return { ...all.reduce(addCharged, NOTHING), base: sumOf(all.map((one) => one.base)), parts, by_time };
}

function addTo(by_time: Map<TimeBucket | null, TimeOfDayCharge>, { bucket }: Terms, one: TimeOfDayCharge): void {
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

function chargeOf(usage: Decimal, { committed }: Terms, share: Decimal): Charged {
  if (committed === null) return { ...NOTHING, charge: usage };
  return applyCommitment(usage, { ...committed, amount: committed.amount.times(share) });
}

function* emptyWindows(
  { commitment, range, over_until }: WindowedQuestion,
  { seen, termsAt }: { seen: ReadonlySet<Milliseconds>; termsAt: (at: Milliseconds) => Terms },
): Generator<{ window: Window; terms: Terms }> {
  if (!commitment.true_up && !commitment.time_buckets.some((bucket) => bucket.true_up_enabled)) return;
  const until = Math.min(range.end, over_until);
  if (until <= range.start) return;
  for (const window of windowsOf(range.start, until, commitment.windows.size, commitment.windows)) {
    if (seen.has(window.start) || Math.min(window.end, range.end) > until) continue;
    const terms = termsAt(window.start);
    if (terms.committed?.true_up) yield { window, terms };
  }
}

/** What holds in the window that begins at an instant. */
function termsOf({ commitment, price }: WindowedQuestion): (at: Milliseconds) => Terms {
  const { type, value, overage_factor, true_up, time_buckets, windows } = commitment;
  const amount = value === null ? null : committedAmount(type, value, price);
  const own: Terms = { bucket: null, price, committed: amount && { amount, overage_factor, true_up } };
  if (time_buckets.length === 0) return () => own;
  const placed = time_buckets.map((bucket) => ({ ...minutesOf(bucket), terms: termsOfBucket(bucket, price) }));
  return (at) => {
    const minute = Math.floor(wallTime(windows.timezone, at) / 60_000) % DAY;
    const found = placed.find(({ from, until }) => isIn(minute, from, until) || isIn(minute + DAY, from, until));
    return found?.terms ?? own;
  };
}

const DAY = 24 * 60;

const isIn = (minute: number, from: number, until: number) => from <= minute && minute < until;

function minutesOf({ start, end }: TimeBucket): { from: number; until: number } {
  const from = start.hour * 60 + start.minute;
  const until = end.hour * 60 + end.minute;
  return { from, until: until > from ? until : until + DAY };
}

function termsOfBucket(bucket: TimeBucket, own: PriceTerms): Terms {
  const price = bucket.price === null ? own : { ...bucket.price, currency: own.currency };
  const amount = committedAmount(bucket.commitment_type, new Decimal(bucket.commitment_value), price);
  const overage_factor = new Decimal(bucket.overage_factor);
  return { bucket, price, committed: { amount, overage_factor, true_up: bucket.true_up_enabled } };
}

function shareIn(range: Period, { start, end }: Window): Decimal {
  const part = Math.min(end, range.end) - Math.max(start, range.start);
  return new Decimal(part).dividedBy(end - start);
}
