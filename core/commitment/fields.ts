/** The fields of a commitment on a subscription and on its lines (docs/rules/commitments.md, "What can be stated"). */
import { z } from 'zod';
import { COMMITMENT_TYPES, timeBucketShape } from '../price/time-buckets.ts';
import { anyCase, decimalText, orNull } from '../record.ts';
import { RECURRING_PERIODS } from '../time/period.ts';

/** Of a line item. */
export const committedLineFields = {
  commitment_amount: decimalText
    .nullish()
    .meta({ description: 'Money that usage is committed to; null without, or where units are.' }),
  commitment_quantity: decimalText
    .nullish()
    .meta({ description: 'Units that usage is committed to; null without, or where money is.' }),
  commitment_type: z
    .enum(COMMITMENT_TYPES)
    .nullish()
    .meta({ description: 'Whether money or units are committed to; null without.' }),
  commitment_overage_factor: decimalText
    .nullish()
    .meta({ description: 'What is above costs so many times as much; null without a commitment.' }),
  commitment_true_up_enabled: z.boolean().meta({ description: 'Whether what is lacking is charged.' }),
  commitment_windowed: z.boolean().meta({ description: 'Whether each window of the meter has the commitment.' }),
  commitment_duration: z
    .enum(RECURRING_PERIODS)
    .nullish()
    .meta({ description: 'Over how long it is used up; null is the billing period.' }),
  commitment_time_buckets: z
    .array(timeBucketShape)
    .nullish()
    .meta({ description: 'Times of day with a commitment of their own, as the price has them; null without.' }),
};

/** Of a subscription as a whole. */
export const committedSubscriptionFields = {
  commitment_amount: decimalText
    .nullish()
    .meta({ description: 'Money that its usage is committed to; null without a commitment of its own.' }),
  commitment_duration: z
    .enum(RECURRING_PERIODS)
    .nullish()
    .meta({ description: 'Over how long it is used up; null is the billing period.' }),
  overage_factor: decimalText
    .nullish()
    .meta({ description: 'Usage above the commitment costs so many times as much; null without one.' }),
  enable_true_up: z.boolean().meta({ description: 'Whether what is lacking to the commitment is charged.' }),
};

/** As a request states it. */
export const subscriptionCommitmentFields = {
  commitment_amount: orNull(decimalText).meta({
    description: 'Money that its usage is committed to, in units of the currency; none when absent or 0.',
  }),
  commitment_duration: orNull(anyCase(RECURRING_PERIODS)).meta({
    description: 'Over how long it is used up, not shorter than a billing period; the billing period when absent.',
  }),
  overage_factor: orNull(decimalText).meta({
    description: 'Usage above the commitment costs so many times as much: 1 or more, and 1 when absent.',
  }),
  enable_true_up: orNull(z.boolean()).meta({
    description: 'Whether what is lacking to the commitment is charged; it is not when absent.',
  }),
};
