/** Which subscription, or which line or phase of it, has a coupon, and from when to when (docs/rules/coupons.md, "Associations"). */
import { z } from 'zod';
import { baseFields, metadata, orNull, timestampText } from '../record.ts';

export const couponAssociationShape = z.object({
  id: z.string(),
  coupon_id: z.string().meta({ description: 'The coupon that was redeemed.' }),
  subscription_id: z.string().meta({ description: 'For which subscription.' }),
  subscription_line_item_id: orNull(z.string()).meta({
    description: 'The line that it takes from; null where it takes from the invoice.',
  }),
  subscription_phase_id: orNull(z.string()).meta({ description: 'The phase of the subscription that it belongs to.' }),
  start_date: timestampText.meta({ description: 'From when on it works.' }),
  end_date: orNull(timestampText).meta({ description: 'Until when, exclusive; open when null.' }),
  metadata,
  ...baseFields,
});
export type CouponAssociation = z.output<typeof couponAssociationShape>;
