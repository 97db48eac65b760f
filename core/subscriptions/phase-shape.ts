/** Request shape of a phase (core/subscriptions/phases.ts). Overrides and lines have the shapes that other requests use. */
import { z } from 'zod';
import { subscriptionCouponFields } from '../catalog/coupon/requested-coupons.ts';
import { metadata, orNull, timestampText } from '../foundation/record.ts';

export function buildPhaseShape<Override extends z.ZodType, Line extends z.ZodType>(override: Override, line: Line) {
  return z.object({
    start_date: timestampText.meta({
      description:
        'Start of the phase. For the first phase it is the start of the subscription, for any other the end of the preceding phase.',
    }),
    end_date: orNull(timestampText).meta({
      description:
        'Exclusive end of the phase. Only the last phase may be open. After a last phase that ends, the terms of no phase apply.',
    }),
    override_line_items: orNull(z.array(override)).meta({
      description:
        'Terms that apply in this phase instead of the plan’s prices and of the subscription’s other overrides.',
    }),
    line_items: orNull(z.array(line).max(100)).meta({
      description:
        'Prices beside those of the plan in this phase, at most 100. Their dates lie inside the phase; by default they cover all of it.',
    }),
    metadata,
    ...subscriptionCouponFields,
  });
}
