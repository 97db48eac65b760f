/** Usage and amounts of each time of day of a commitment in analytics (docs/rules/usage.md, "Analytics"). */
import { z } from 'zod';
import type { TimesOfDay } from '../../../actions/reporting/usage/analytics-costs.ts';
import type { AnalyticsItem } from '../../../actions/reporting/usage/analytics-items.ts';
import { COMMITMENT_TYPES, type TimeBucket, timeOfDayShape } from '../../../core/catalog/price/time-buckets.ts';
import { decimalText } from '../../../core/foundation/record.ts';

const bucketId = z.string().meta({
  description: 'Id of the time of day in the price; empty for the time outside of all times of day.',
});

export const PointBucket = z
  .object({
    bucket_id: bucketId,
    price_id: z.string().meta({ description: 'Price that has the time of day.' }),
  })
  .meta({ id: 'PointBucket' });

const BucketTime = timeOfDayShape.meta({ id: 'BucketTime' });

export const BucketSummary = z
  .object({
    ...PointBucket.shape,
    subscription_line_item_id: z.string().meta({ description: 'Line item with the commitment.' }),
    start: BucketTime.nullable().meta({
      description: 'Start of the time of day; null for the time outside all times of day.',
    }),
    end: BucketTime.nullable().meta({
      description: 'Exclusive end of the time of day; null for the time outside all times of day.',
    }),
    commitment_type: z
      .enum(COMMITMENT_TYPES)
      .nullable()
      .meta({ description: 'Type of the commitment: money or units; null without one.' }),
    commitment_value: decimalText.nullable().meta({ description: 'Commitment per window; null without one.' }),
    total_usage: decimalText.meta({ description: 'Usage of the windows that begin in the time of day.' }),
    base_charge: decimalText.meta({ description: 'Cost of this usage before the commitment.' }),
    computed_utilized: decimalText.meta({ description: 'Part of the cost that the commitment covers.' }),
    computed_overage: decimalText.meta({
      description: 'Amount above the commitment, after the overage factor; 0 without a commitment.',
    }),
    computed_true_up: decimalText.meta({ description: 'Shortfall of the commitment, which is charged.' }),
  })
  .meta({ id: 'BucketSummary' });

/** Returns exact amounts in the order of the price's times of day; the time outside of them is last. */
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

/** Returns the times of day in which the windows of a point begin. */
export function pointBuckets(item: AnalyticsItem | null, times: TimesOfDay | null) {
  if (item === null || times === null) return null;
  return inOrder(item, times).map((bucket) => pointBucket(item, bucket));
}

function pointBucket({ price }: AnalyticsItem, bucket: TimeBucket | null) {
  return { bucket_id: bucket?.id ?? '', price_id: price.id };
}

function inOrder({ commitment }: AnalyticsItem, times: TimesOfDay): (TimeBucket | null)[] {
  return [...(commitment?.time_buckets ?? []), null].filter((bucket) => times.has(bucket));
}

function committedTo({ commitment }: AnalyticsItem, bucket: TimeBucket | null) {
  if (bucket) return { type: bucket.commitment_type, value: bucket.commitment_value };
  return { type: commitment?.type ?? null, value: commitment?.value?.toFixed() ?? null };
}
