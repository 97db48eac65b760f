/** What a coupon took off an invoice, or off one line of it, and from what (docs/rules/coupons.md, "On an invoice"). */
import { z } from 'zod';
import { baseFields, decimalText, metadata, timestampText } from '../record.ts';
import { COUPON_TYPES } from './record.ts';

export const CouponApplication = z.object({
  id: z.string(),
  coupon_id: z.string().meta({ description: 'The coupon.' }),
  coupon_association_id: z.string().nullable().meta({
    description: 'By which association the subscription has it; null of one that was stated with the invoice.',
  }),
  invoice_id: z.string().meta({ description: 'The invoice; empty in a preview.' }),
  invoice_line_item_id: z
    .string()
    .nullable()
    .meta({ description: 'The line that it was taken off; null where it was taken off the invoice.' }),
  subscription_id: z
    .string()
    .nullable()
    .meta({ description: 'The subscription that has the coupon; null without one.' }),
  applied_at: timestampText.meta({ description: 'When the invoice was computed.' }),
  original_price: decimalText.meta({ description: 'From what it was taken off.' }),
  final_price: decimalText.meta({ description: 'What it left.' }),
  discounted_amount: decimalText.meta({ description: 'What it took off.' }),
  discount_type: z.enum(COUPON_TYPES).meta({ description: 'An amount of money, or a share.' }),
  discount_percentage: decimalText.nullable().meta({ description: 'Of a percentage coupon: how many percent.' }),
  currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
  coupon_snapshot: z.record(z.string(), z.unknown()).nullable().meta({ description: 'The coupon as it was.' }),
  metadata,
  ...baseFields,
});
export type CouponApplication = z.output<typeof CouponApplication>;
