/** Coupons and tax rates in a request for a manual invoice (docs/rules/coupons.md, "On invoices written by hand"). */
import { z } from 'zod';
import { taxOverrides } from '../../catalog/tax/overrides.ts';
import { keyText, orNull } from '../../foundation/record.ts';

const association = orNull(keyText).meta({
  description:
    'Coupon association of a subscription of the customer. Default: the coupon is redeemed for this invoice.',
});
const invoiceCouponShape = z.object({
  coupon_id: keyText.min(1).meta({ description: 'Coupon id.' }),
  coupon_association_id: association,
});
const lineCouponShape = z.object({
  line_item_id: keyText.min(1).meta({
    description: 'Line, by its `price_id`, its `subscription_line_item_id`, or its index among the lines, from 0.',
  }),
  subscription_line_item_id: orNull(keyText).meta({
    description: 'Alternative to `line_item_id` for a line that charges a subscription line item.',
  }),
  coupon_id: keyText.min(1).meta({ description: 'Coupon id.' }),
  coupon_association_id: association,
});

export const invoiceDiscountFields = {
  coupons: orNull(z.array(keyText.min(1)).max(100)).meta({
    description: 'Coupons that discount the invoice, by id or code, in order of application. At most 100.',
  }),
  invoice_coupons: orNull(z.array(invoiceCouponShape).max(100)).meta({
    description:
      'Coupons that discount the invoice, by id, optionally with the association of a subscription of the customer. At most 100.',
  }),
  line_item_coupons: orNull(z.array(lineCouponShape).max(100)).meta({
    description: 'Coupons that discount a line. At most 100.',
  }),
  tax_rates: orNull(z.array(keyText.min(1)).max(100)).meta({
    description: 'Tax rates, by id or code, that replace those of the customer. At most 100.',
  }),
  tax_rate_overrides: taxOverrides.meta({
    description: 'Tax rates with priorities that replace those of the customer.',
  }),
  prepared_tax_rates: orNull(z.array(z.looseObject({ id: keyText.min(1) })).max(100)).meta({
    description: 'Tax rates in the shape of a response; only the `id` is read. At most 100.',
  }),
};
