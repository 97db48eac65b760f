/** What each time of day of a commitment comes to in a range, as analytics answer it (docs/rules/usage.md, "Analytics"). */
import { z } from 'zod';
import type { TimesOfDay } from '../../actions/usage/analytics-costs.ts';
import type { AnalyticsItem } from '../../actions/usage/analytics-items.ts';
import { COMMITMENT_TYPES, type TimeBucket, timeOfDayShape } from '../../core/price/time-buckets.ts';
import { decimalText } from '../../core/record.ts';

const bucketId = z.string().meta({
  description: 'Of the time of day, as the price names it; empty for the time outside of all of them.',
});

export const PointBucket = z
  .object({
    bucket_id: bucketId,
    price_id: z.string().meta({ description: 'The price that has the time of day.' }),
  })
  .meta({ id: 'PointBucket' });

const BucketTime = timeOfDayShape.meta({ id: 'BucketTime' });

export const BucketSummary = z
  .object({
    ...PointBucket.shape,
    subscription_line_item_id: z.string().meta({ description: 'The line item that is committed to it.' }),
    start: BucketTime.nullable().meta({ description: 'From when on; null outside of all times of day.' }),
    end: BucketTime.nullable().meta({ description: 'Until when, exclusive; null outside of all times of day.' }),
    commitment_type: z
      .enum(COMMITMENT_TYPES)
      .nullable()
      .meta({ description: 'Whether money or units are committed to; null where nothing is.' }),
    commitment_value: decimalText
      .nullable()
      .meta({ description: 'How much in each window; null where nothing is committed to.' }),
    total_usage: decimalText.meta({ description: 'The usage of the windows that begin in it.' }),
    base_charge: decimalText.meta({ description: 'What that costs before the commitment.' }),
    computed_utilized: decimalText.meta({ description: 'What of it is paid out of the commitment.' }),
    computed_overage: decimalText.meta({
      description: 'What lies above the commitment, after the factor; where nothing is committed to it is 0.',
    }),
    computed_true_up: decimalText.meta({ description: 'What was lacking to the commitment, and is charged.' }),
  })
  .meta({ id: 'BucketSummary' });

/** Exact amounts, in the order of the price's times of day; the time outside of them comes last. */
export function bucketSummaries(item: AnalyticsItem | null, times: TimesOfDay | null) {
  if (item === null || times === null) return null;
  return inOrder(item, times).map((bucket) => {
    const one = times.get(bucket)!;
    const { type, value } = committedTo(item, bucket);
    return {
      ...pointBucket(item, bucket),
      subscription_line_item_id: item.id,
      start: bucket?.start,
      end: bucket?.end,
      commitment_type: value === null ? null : type,
      commitment_value: value,
      total_usage: one.quantity,
      base_charge: one.base,
      computed_utilized: one.utilized,
      computed_overage: one.overage,
      computed_true_up: one.true_up,
    };
  });
}

/** Which of them a point lies in. */
export function pointBuckets(item: AnalyticsItem | null, times: TimesOfDay | null) {
  if (item === null || times === null) return null;
  return inOrder(item, times).map((bucket) => pointBucket(item, bucket));
}

function pointBucket({ price_record }: AnalyticsItem, bucket: TimeBucket | null) {
  return { bucket_id: bucket?.id ?? '', price_id: price_record.id };
}

function inOrder({ commitment }: AnalyticsItem, times: TimesOfDay): (TimeBucket | null)[] {
  return [...(commitment?.time_buckets ?? []), null].filter((bucket) => times.has(bucket));
}

function committedTo({ commitment }: AnalyticsItem, bucket: TimeBucket | null) {
  if (bucket) return { type: bucket.commitment_type, value: bucket.commitment_value };
  return { type: commitment?.type ?? null, value: commitment?.value?.toFixed() ?? null };
}
