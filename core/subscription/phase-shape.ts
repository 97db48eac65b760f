/** What a request states of a phase (core/subscription/phases.ts), of overrides and of lines as they are stated elsewhere. */
import { z } from 'zod';
import { subscriptionCouponFields } from '../coupon/requested-coupons.ts';
import { metadata, orNull, timestampText } from '../record.ts';

export function buildPhaseShape<Override extends z.ZodType, Line extends z.ZodType>(override: Override, line: Line) {
  return z.object({
    start_date: timestampText.meta({
      description: 'The start of the subscription, of the first phase; of any other the end of the phase before it.',
    }),
    end_date: orNull(timestampText).meta({
      description: 'Until when, exclusive; only the last phase may be open. After it the terms of no phase hold.',
    }),
    override_line_items: orNull(z.array(override)).meta({
      description:
        'What is paid in this phase in the place of prices of the plan, and of the overrides beside the phases.',
    }),
    line_items: orNull(z.array(line).max(100)).meta({
      description: 'Prices beside those of the plan, in this phase; with dates inside of it, or all of it when absent.',
    }),
    metadata,
    ...subscriptionCouponFields,
  });
}
