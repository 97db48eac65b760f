/**
 * Times of day of a windowed commitment, stored on the price. Each has its own commitment and possibly its own price
 * (docs/rules/pricing.md, "Times of day with a commitment of their own"). If the windows of the meter are an hour or
 * longer, minutes are cut off.
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid, prefixField } from '../../foundation/error.ts';
import {
  allOrNull,
  anyCase,
  decimalText,
  orDefault,
  orNull,
  toEnumValues,
  wholeNumber,
} from '../../foundation/record.ts';
import { DAY_MINUTES } from '../../foundation/time/durations.ts';
import type { WindowSize } from '../../foundation/time/window.ts';
import { checkModel } from '../pricing/charge.ts';
import { type BillingModel, PRICE_MODELS, type TierMode } from '../pricing/index.ts';
import { modelFields } from '../pricing/terms.ts';
import { sortTiers } from '../pricing/tiers.ts';

export const COMMITMENT_TYPES = ['amount', 'quantity'] as const;

export const timeOfDayShape = z.object({
  hour: wholeNumber
    .refine((hour) => hour >= 0 && hour <= 24, { error: 'must be 0 to 24' })
    .meta({ description: 'Hour, 0 to 23. As an end also 24.' }),
  minute: orDefault(
    wholeNumber.refine((minute) => minute >= 0 && minute <= 59, { error: 'must be 0 to 59' }),
    0,
  ).meta({
    description: 'Minute, 0 to 59. It is set to 0 if the windows of the meter are an hour or longer. Default: 0.',
  }),
});
type TimeOfDay = z.output<typeof timeOfDayShape>;

/** Price of a unit at these times of day, instead of the regular price. */
const bucketPriceShape = z.object({
  billing_model: anyCase(toEnumValues(listModelNames<BillingModel>('billing_model'))).meta({
    description:
      'Billing model. With FLAT_FEE each unit costs the amount, with PACKAGE each package; TIERED charges by its tiers.',
  }),
  tier_mode: orNull(anyCase(toEnumValues(listModelNames<TierMode>('tier_mode')))).meta({
    description: 'Tier mode of a TIERED price.',
  }),
  ...allOrNull(modelFields),
});

export const timeBucketShape = z.object({
  id: orNull(z.string()).meta({ description: 'Id assigned by the service. A value in a request is ignored.' }),
  start: timeOfDayShape.meta({ description: 'Start, in local time of the subscription.' }),
  end: timeOfDayShape.meta({ description: 'Exclusive end. An end before the start is on the next day.' }),
  price: orNull(bucketPriceShape).meta({ description: 'Price at these times of day. Default: the regular price.' }),
  commitment_type: orDefault(anyCase(COMMITMENT_TYPES), 'amount').meta({
    description: 'Unit of the commitment: money (amount) or units (quantity). Default: amount.',
  }),
  commitment_value: decimalText.meta({ description: 'Commitment per window, greater than 0.' }),
  overage_factor: orDefault(decimalText, '1').meta({
    description: 'Price factor of usage above the commitment, at least 1. Default: 1.',
  }),
  true_up_enabled: orDefault(z.boolean(), false).meta({
    description: 'True to charge the shortfall of the commitment. Default: false.',
  }),
});
export type TimeBucket = z.output<typeof timeBucketShape>;

export const timeBucketsShape = z.array(timeBucketShape).max(96);

/** Minutes per window, for windows of a day or less. Longer windows have no times of day. */
const MINUTES: Partial<Record<WindowSize, number>> = {
  MINUTE: 1,
  '15MIN': 15,
  '30MIN': 30,
  HOUR: 60,
  '3HOUR': 180,
  '6HOUR': 360,
  '12HOUR': 720,
  DAY: DAY_MINUTES,
};

type TimeBucketInput = {
  /** Window size of the meter; null without windows. */
  readonly bucket_size: WindowSize | null;
  readonly currency: string;
  /** Name of the field in the request, for error messages. */
  readonly field: string;
};

/**
 * Validates the buckets and returns them in stored form: sorted by start, aligned to the meter's windows, without
 * overlaps.
 */
export function checkTimeBuckets(buckets: readonly TimeBucket[], input: TimeBucketInput): TimeBucket[] {
  const { bucket_size, field } = input;
  if (bucket_size === null) throw invalid(field, 'needs a meter with a bucket_size');
  const window = MINUTES[bucket_size];
  if (window === undefined) throw invalid(field, `needs a meter with windows of a day at most, not ${bucket_size}`);
  const placed = buckets.map((bucket, index) => {
    const at = `${field}[${index}]`;
    checkCommitment(bucket, at);
    return { at, ...placedIn(bucket, { window, at }), bucket: complete(bucket, { ...input, window, at }) };
  });
  placed.sort((a, b) => a.from - b.from);
  checkApart(placed);
  return placed.map(({ bucket }) => bucket);
}

/** Whether the times are equal; ids are ignored. An empty list equals null. */
export function hasSameTimes(some: readonly TimeBucket[] | null, others: readonly TimeBucket[] | null): boolean {
  return serializeTimes(some) === serializeTimes(others);
}

/** Serializes the fields in the order of the shape, because the order in a store may differ. */
function serializeTimes(buckets: readonly TimeBucket[] | null): string {
  return JSON.stringify(timeBucketsShape.parse(buckets ?? []).map((bucket) => ({ ...bucket, id: null })));
}

function checkCommitment({ commitment_value, overage_factor }: TimeBucket, at: string): void {
  if (!new Decimal(commitment_value).gt(0)) throw invalid(`${at}.commitment_value`, 'must be greater than 0');
  if (new Decimal(overage_factor).lt(1)) throw invalid(`${at}.overage_factor`, 'must be at least 1');
}

type Placing = { window: number; at: string };
/** Minutes since midnight. An end on the next day is above 1,440. */
type PlacedBucket = { from: number; until: number };

function placedIn(bucket: TimeBucket, { window, at }: Placing): PlacedBucket {
  if (bucket.start.hour === 24) throw invalid(`${at}.start.hour`, 'must be 0 to 23');
  if (bucket.end.hour === 24 && bucket.end.minute > 0) throw invalid(`${at}.end.minute`, 'must be 0 at 24:00');
  const from = toMinutes(bucket.start, window);
  const end = toMinutes(bucket.end, window);
  if (from === end) throw invalid(`${at}.end`, 'must not be the same as start');
  for (const [name, minutes] of [
    ['start', from],
    ['end', end],
  ] as const) {
    if (minutes % window > 0) throw invalid(`${at}.${name}`, `must lie on the ${window}-minute windows of the meter`);
  }
  return { from, until: end > from ? end : end + DAY_MINUTES };
}

const isCoarse = (window: number) => window >= 60;

function toMinutes({ hour, minute }: TimeOfDay, window: number): number {
  return hour * 60 + (isCoarse(window) ? 0 : minute);
}

function complete(bucket: TimeBucket, { window, at, currency }: Placing & TimeBucketInput): TimeBucket {
  const time = ({ hour, minute }: TimeOfDay) => ({ hour, minute: isCoarse(window) ? 0 : minute });
  return {
    ...bucket,
    start: time(bucket.start),
    end: time(bucket.end),
    price: pricedAs(bucket, `${at}.price`, currency),
  };
}

function pricedAs({ price }: TimeBucket, field: string, currency: string): TimeBucket['price'] {
  if (price === null) return null;
  const { billing_model, amount, tiers } = price;
  if (billing_model !== 'TIERED' && amount === null)
    throw invalid(`${field}.amount`, `is required for ${billing_model}`);
  try {
    const ordered = { ...price, tiers: tiers === null ? null : sortTiers(tiers) };
    checkModel({ ...ordered, currency });
    return ordered;
  } catch (error) {
    throw prefixField(error, field);
  }
}

/** Checks that buckets, which are in order of start, do not overlap. The last one may reach beyond midnight into the first. */
function checkApart(placed: readonly (PlacedBucket & { at: string })[]): void {
  for (const [index, { at, until }] of placed.entries()) {
    const next = placed[index + 1] ?? { ...placed[0]!, from: placed[0]!.from + DAY_MINUTES };
    if (until > next.from) throw invalid(`${next.at}.start`, `lies inside of ${at}`);
  }
}

function listModelNames<Name extends string>(field: 'billing_model' | 'tier_mode'): Record<Name, true> {
  const names = PRICE_MODELS.flatMap((model) => model[field] ?? []);
  return Object.fromEntries(names.map((name) => [name, true])) as Record<Name, true>;
}
