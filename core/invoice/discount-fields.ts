/** Coupons and tax rates that are stated with an invoice that is written by hand (docs/rules/coupons.md, "On invoices written by hand"). */
import { z } from 'zod';
import { keyText, orNull } from '../record.ts';
import { taxOverrides } from '../tax/overrides.ts';

const association = orNull(keyText).meta({
  description: 'By which association a subscription of the customer has it; redeemed for this invoice when absent.',
});
const invoiceCouponShape = z.object({
  coupon_id: keyText.min(1).meta({ description: 'The coupon.' }),
  coupon_association_id: association,
});
const lineCouponShape = z.object({
  line_item_id: keyText.min(1).meta({
    description: 'The line: its `price_id`, its `subscription_line_item_id`, or its place among the lines, from 0.',
  }),
  subscription_line_item_id: orNull(keyText).meta({ description: 'The same, where a line charges one.' }),
  coupon_id: keyText.min(1).meta({ description: 'The coupon.' }),
  coupon_association_id: association,
});

export const invoiceDiscountFields = {
  coupons: orNull(z.array(keyText.min(1)).max(100)).meta({
    description: 'Coupons, by their ids or codes, that take something off the invoice; in this order.',
  }),
  invoice_coupons: orNull(z.array(invoiceCouponShape).max(100)).meta({
    description: 'The same by ids, also as an association of a subscription of the customer has one.',
  }),
  line_item_coupons: orNull(z.array(lineCouponShape).max(100)).meta({
    description: 'Coupons that take something off a line.',
  }),
  tax_rates: orNull(z.array(keyText.min(1)).max(100)).meta({
    description: 'Tax rates, by their ids or codes, in the place of those of the customer.',
  }),
  tax_rate_overrides: taxOverrides.meta({ description: 'The same with priorities.' }),
  prepared_tax_rates: orNull(z.array(z.looseObject({ id: keyText.min(1) })).max(100)).meta({
    description: 'The same as rates are answered; what counts is the `id`.',
  }),
};
