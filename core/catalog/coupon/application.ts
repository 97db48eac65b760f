/**
 * Record of a coupon's discount on an invoice or on one of its lines, with the amounts before and after it (docs/rules/coupons.md, "On an
 * invoice").
 */
import { z } from 'zod';
import { baseFields, decimalText, metadata, timestampText } from '../../foundation/record.ts';
import { COUPON_TYPES } from './record.ts';

export const CouponApplication = z.object({
  id: z.string(),
  coupon_id: z.string().meta({ description: 'Id of the coupon.' }),
  coupon_association_id: z.string().nullable().meta({
    description: 'Association by which the subscription has the coupon; null if the coupon was given with the invoice.',
  }),
  invoice_id: z.string().meta({ description: 'Id of the invoice; empty in a preview.' }),
  invoice_line_item_id: z
    .string()
    .nullable()
    .meta({ description: 'Discounted line; null if the whole invoice was discounted.' }),
  subscription_id: z.string().nullable().meta({ description: 'Subscription that has the coupon; null without one.' }),
  applied_at: timestampText.meta({ description: 'Time at which the invoice was computed.' }),
  original_price: decimalText.meta({ description: 'Amount before the discount.' }),
  final_price: decimalText.meta({ description: 'Amount after the discount.' }),
  discounted_amount: decimalText.meta({ description: 'Amount of the discount.' }),
  discount_type: z.enum(COUPON_TYPES).meta({ description: 'Type of the discount: a fixed amount or a percentage.' }),
  discount_percentage: decimalText
    .nullable()
    .meta({ description: 'Percentage of the coupon; null for a fixed coupon.' }),
  currency: z.string().meta({ description: 'Currency code (ISO 4217), in lower case.' }),
  coupon_snapshot: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ description: 'Copy of the coupon as it was applied.' }),
  metadata,
  ...baseFields,
});
export type CouponApplication = z.output<typeof CouponApplication>;
