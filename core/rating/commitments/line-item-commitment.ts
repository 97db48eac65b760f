/**
 * Validates the commitment of a line item and converts it to its stored form (docs/rules/commitments.md, "Possible commitments"). A
 * commitment is in money or in units, on a USAGE price. It is for one billing period, for a longer term, or for each window of its meter.
 */
import { z } from 'zod';
import { COMMITMENT_TYPES, hasSameTimes, type TimeBucket, timeBucketsShape } from '../../catalog/price/time-buckets.ts';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { anyCase, decimalText, orNull } from '../../foundation/record.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import { RECURRING_PERIODS, type RecurringPeriod } from '../../foundation/time/period.ts';
import type { WindowSize } from '../../foundation/time/window.ts';
import type { LineCommitment } from './line.ts';
import { compareDuration } from './term.ts';

const FIELDS = {
  commitment_amount: orNull(decimalText).meta({
    description: 'Committed amount of money, in units of the currency. Refused together with commitment_quantity.',
  }),
  commitment_quantity: orNull(decimalText).meta({
    description: 'Committed units of the meter. Refused together with commitment_amount.',
  }),
  commitment_type: orNull(anyCase(COMMITMENT_TYPES)).meta({
    description: '`amount` or `quantity`, matching the committed field. Default: the type of the committed field.',
  }),
  commitment_duration: orNull(anyCase(RECURRING_PERIODS)).meta({
    description:
      'Term in which the commitment is used up; not shorter than a billing period. Default: the billing period.',
  }),
  commitment_time_buckets: orNull(timeBucketsShape).meta({
    description:
      'Times of day with a commitment of their own; stored on a price of the line. Requires a commitment for each window.',
  }),
};
const FACTOR = { description: 'Factor on the cost of usage above the commitment. At least 1; default: 1.' };
const TRUE_UP = { description: 'Whether the shortfall is charged at the end. Default: false.' };
const WINDOWED = {
  description: 'Whether the commitment applies to each window of the meter. Requires a meter with a bucket_size.',
};

/** Commitment fields in a request that adds a line. */
export const lineCommitmentFields = {
  ...FIELDS,
  commitment_overage_factor: orNull(decimalText).meta(FACTOR),
  commitment_true_up_enabled: orNull(z.boolean()).meta(TRUE_UP),
  commitment_windowed: orNull(z.boolean()).meta(WINDOWED),
};

/** Commitment of a line with a price of the plan or an add-on. */
export const lineItemCommitmentShape = z
  .object({
    ...FIELDS,
    overage_factor: orNull(decimalText).meta(FACTOR),
    enable_true_up: orNull(z.boolean()).meta(TRUE_UP),
    is_window_commitment: orNull(z.boolean()).meta(WINDOWED),
  })
  .meta({ id: 'LineItemCommitmentConfig' });
export type LineItemCommitment = z.output<typeof lineItemCommitmentShape>;

export type RequestedCommitment = {
  readonly [Field in keyof typeof lineCommitmentFields]: z.output<(typeof lineCommitmentFields)[Field]>;
};

export function toRequestedCommitment({
  overage_factor,
  enable_true_up,
  is_window_commitment,
  ...same
}: LineItemCommitment): RequestedCommitment {
  return {
    ...same,
    commitment_overage_factor: overage_factor,
    commitment_true_up_enabled: enable_true_up,
    commitment_windowed: is_window_commitment,
  };
}

export type StoredCommitment = {
  commitment_amount?: string | null | undefined;
  commitment_quantity?: string | null | undefined;
  commitment_type?: LineCommitment['type'] | null | undefined;
  commitment_overage_factor?: string | null | undefined;
  commitment_true_up_enabled: boolean;
  commitment_windowed: boolean;
  commitment_duration?: RecurringPeriod | null | undefined;
  commitment_time_buckets?: TimeBucket[] | null | undefined;
};

type CommittedPrice = {
  readonly type: 'USAGE' | 'FIXED';
  readonly billing_period: RecurringPeriod | 'ONETIME';
  readonly billing_period_count: number;
  readonly commitment_time_buckets?: readonly TimeBucket[] | null;
};
type LineCommitmentInput = {
  readonly price: CommittedPrice;
  /** Window size of the meter; null if it has no windows. */
  readonly bucket_size: WindowSize | null;
  /** Path of the fields in the request, with a dot at its end. */
  readonly prefix?: string;
};

/** Commitment of a line if the request has none. With times of day on its price, the line still has a commitment in each window. */
export function emptyCommitment({
  commitment_time_buckets,
}: Pick<CommittedPrice, 'commitment_time_buckets'>): StoredCommitment {
  return {
    commitment_amount: null,
    commitment_quantity: null,
    commitment_type: null,
    commitment_overage_factor: null,
    commitment_true_up_enabled: false,
    commitment_windowed: Boolean(commitment_time_buckets?.length),
    commitment_duration: null,
    commitment_time_buckets: commitment_time_buckets?.length ? [...commitment_time_buckets] : null,
  };
}

/** Zeros and empty values mean no commitment. */
export function hasCommitment(requested: RequestedCommitment): boolean {
  return COMMITMENT_FIELDS.some((field) => {
    const value = requested[field];
    if (Array.isArray(value)) return value.length > 0;
    return typeof value === 'string' ? value !== '0' : Boolean(value);
  });
}

const COMMITMENT_FIELDS = Object.keys(lineCommitmentFields) as (keyof RequestedCommitment)[];

/** Validates a requested commitment and returns its stored form. `input.price` must already contain the requested times of day. */
export function toStoredCommitment(requested: RequestedCommitment, input: LineCommitmentInput): StoredCommitment {
  const { price } = input;
  if (!hasCommitment(requested)) return emptyCommitment(price);
  return buildStoredCommitment(withoutZeros(requested), input);
}

const withoutZeros = (requested: RequestedCommitment): RequestedCommitment => ({
  ...requested,
  commitment_amount: requested.commitment_amount === '0' ? null : requested.commitment_amount,
  commitment_quantity: requested.commitment_quantity === '0' ? null : requested.commitment_quantity,
  commitment_overage_factor: requested.commitment_overage_factor === '0' ? null : requested.commitment_overage_factor,
});

function buildStoredCommitment(requested: RequestedCommitment, input: LineCommitmentInput): StoredCommitment {
  const { price, prefix = '' } = input;
  const field = (name: keyof RequestedCommitment) => prefix + name;
  if (price.type !== 'USAGE') throw invalid(field('commitment_amount'), 'is for USAGE prices only');
  const commitment_type = checkValue(requested, input);
  const factor = requested.commitment_overage_factor;
  if (factor !== null && new Decimal(factor).lt(1))
    throw invalid(field('commitment_overage_factor'), 'must be at least 1');
  checkWindows(requested, input);
  return {
    commitment_amount: requested.commitment_amount,
    commitment_quantity: requested.commitment_quantity,
    commitment_type,
    commitment_overage_factor: commitment_type === null ? null : (factor ?? '1'),
    commitment_true_up_enabled: requested.commitment_true_up_enabled ?? false,
    commitment_windowed: requested.commitment_windowed ?? Boolean(price.commitment_time_buckets?.length),
    commitment_duration: checkDuration(requested, input),
    commitment_time_buckets: price.commitment_time_buckets?.length ? [...price.commitment_time_buckets] : null,
  };
}

function checkValue(
  requested: RequestedCommitment,
  { price, prefix = '' }: LineCommitmentInput,
): StoredCommitment['commitment_type'] {
  const { commitment_amount: amount, commitment_quantity: quantity, commitment_type: type } = requested;
  if (amount !== null && quantity !== null)
    throw invalid(`${prefix}commitment_quantity`, 'cannot be combined with commitment_amount');
  const value = amount ?? quantity;
  if (value === null) {
    // The times of day of the price have their own commitments, so the line needs no value.
    if (price.commitment_time_buckets?.length && type === null) return null;
    throw invalid(`${prefix}commitment_${type ?? 'amount'}`, 'is required');
  }
  const own = amount === null ? 'quantity' : 'amount';
  if (!new Decimal(value).gt(0)) throw invalid(`${prefix}commitment_${own}`, 'must be greater than 0');
  if (type !== null && type !== own) throw invalid(`${prefix}commitment_type`, `must be ${own}, as is stated`);
  return own;
}

function checkWindows(requested: RequestedCommitment, { bucket_size, price, prefix = '' }: LineCommitmentInput): void {
  if (requested.commitment_windowed && bucket_size === null)
    throw invalid(`${prefix}commitment_windowed`, 'needs a meter with a bucket_size');
  if (requested.commitment_windowed === false && price.commitment_time_buckets?.length)
    throw invalid(`${prefix}commitment_windowed`, 'must be true for a price with times of day');
  if (requested.commitment_time_buckets?.length && !requested.commitment_windowed)
    throw invalid(`${prefix}commitment_time_buckets`, 'needs commitment_windowed');
}

/** Checks the requested duration; null if none is requested, or if the price is one-time. */
function checkDuration(
  requested: RequestedCommitment,
  { price, prefix = '' }: LineCommitmentInput,
): StoredCommitment['commitment_duration'] {
  const { commitment_duration: duration, commitment_windowed } = requested;
  if (duration === null || price.billing_period === 'ONETIME') return null;
  const compared = compareDuration(duration, { ...price, billing_period: price.billing_period });
  if (compared === 0) return duration;
  if (commitment_windowed || price.commitment_time_buckets?.length)
    throw invalid(`${prefix}commitment_duration`, 'does not go with commitment_windowed: each window is by itself');
  if (compared < 0) throw invalid(`${prefix}commitment_duration`, 'must not be shorter than the billing period');
  return duration;
}

/** Converts the stored commitment of a line to the form that pricing uses; null without a commitment. */
export function lineCommitment(
  line: StoredCommitment & RecurringLine,
  grid: { bucket_size: WindowSize | null; timezone: string; billing_anchor: string },
): LineCommitment | null {
  const { commitment_type: type, commitment_windowed, commitment_duration: duration, commitment_time_buckets } = line;
  const time_buckets = commitment_time_buckets ?? [];
  if (!type && time_buckets.length === 0) return null;
  const value = line.commitment_amount ?? line.commitment_quantity ?? null;
  const { bucket_size: size, timezone, billing_anchor } = grid;
  return {
    type: type ?? 'amount',
    value: value === null ? null : new Decimal(value),
    overage_factor: new Decimal(line.commitment_overage_factor ?? '1'),
    true_up: line.commitment_true_up_enabled,
    duration: duration && isLonger(duration, line) ? duration : null,
    windows: commitment_windowed && size ? { size, timezone, billing_anchor: toInstant(billing_anchor) } : null,
    time_buckets,
  };
}

type RecurringLine = Pick<CommittedPrice, 'billing_period' | 'billing_period_count'>;

function isLonger(duration: RecurringPeriod, line: RecurringLine): boolean {
  const { billing_period, billing_period_count } = line;
  return billing_period !== 'ONETIME' && compareDuration(duration, { billing_period, billing_period_count }) > 0;
}

/**
 * Commitment of an existing line after a request that changes it. A request replaces the whole commitment, and zeros remove it. Null if the
 * request has no commitment fields, or equals the commitment of the line.
 */
export function changedCommitment(
  requested: RequestedCommitment,
  line: StoredCommitment,
  input: LineCommitmentInput,
): StoredCommitment | null {
  if (COMMITMENT_FIELDS.every((field) => requested[field] === null)) return null;
  const commitment = toStoredCommitment(requested, input);
  const isSame = COMMITMENT_FIELDS.every((field) =>
    field === 'commitment_time_buckets'
      ? hasSameTimes(commitment[field] ?? null, line[field] ?? null)
      : (commitment[field] ?? null) === (line[field] ?? null),
  );
  return isSame ? null : commitment;
}
