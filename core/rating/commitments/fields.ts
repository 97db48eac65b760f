/** Commitment fields of a subscription and of its lines (docs/rules/commitments.md, "Possible commitments"). */
import { z } from 'zod';
import { COMMITMENT_TYPES, timeBucketShape } from '../../catalog/price/time-buckets.ts';
import { anyCase, decimalText, orNull } from '../../foundation/record.ts';
import { RECURRING_PERIODS } from '../../foundation/time/period.ts';

export const committedLineFields = {
  commitment_amount: decimalText
    .nullish()
    .meta({ description: 'Committed amount of money; null without a commitment, or if units are committed.' }),
  commitment_quantity: decimalText
    .nullish()
    .meta({ description: 'Committed units; null without a commitment, or if money is committed.' }),
  commitment_type: z
    .enum(COMMITMENT_TYPES)
    .nullish()
    .meta({ description: 'Whether money or units are committed; null without a commitment.' }),
  commitment_overage_factor: decimalText
    .nullish()
    .meta({ description: 'Factor on the cost of usage above the commitment; null without a commitment.' }),
  commitment_true_up_enabled: z.boolean().meta({ description: 'Whether the shortfall is charged.' }),
  commitment_windowed: z.boolean().meta({ description: 'Whether the commitment applies to each window of the meter.' }),
  commitment_duration: z
    .enum(RECURRING_PERIODS)
    .nullish()
    .meta({ description: 'Term in which the commitment is used up; null means the billing period.' }),
  commitment_time_buckets: z
    .array(timeBucketShape)
    .nullish()
    .meta({ description: 'Times of day with a commitment of their own, as the price has them; null without any.' }),
};

export const committedSubscriptionFields = {
  commitment_amount: decimalText.nullish().meta({
    description: 'Committed amount of usage for the whole subscription; null without a commitment of the subscription.',
  }),
  commitment_duration: z
    .enum(RECURRING_PERIODS)
    .nullish()
    .meta({ description: 'Term in which the commitment is used up; null means the billing period.' }),
  overage_factor: decimalText
    .nullish()
    .meta({ description: 'Factor on the cost of usage above the commitment; null without a commitment.' }),
  enable_true_up: z.boolean().meta({ description: 'Whether the shortfall to the commitment is charged.' }),
};

/** Commitment fields of a request for a subscription. */
export const subscriptionCommitmentFields = {
  commitment_amount: orNull(decimalText).meta({
    description: 'Committed amount of usage, in units of the currency. Default: no commitment; 0 means the same.',
  }),
  commitment_duration: orNull(anyCase(RECURRING_PERIODS)).meta({
    description:
      'Term in which the commitment is used up; not shorter than a billing period. Default: the billing period.',
  }),
  overage_factor: orNull(decimalText).meta({
    description: 'Factor on the cost of usage above the commitment. At least 1; default: 1.',
  }),
  enable_true_up: orNull(z.boolean()).meta({
    description: 'Whether the shortfall to the commitment is charged. Default: false.',
  }),
};
