/** An invoice as it is answered; its customer and subscription only where they are asked for. */
import { z } from 'zod';
import { CouponApplication } from '../../core/coupon/application.ts';
import { Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';
import { decimalText } from '../../core/record.ts';
import { TaxApplied } from '../../core/tax/applied.ts';
import { TaxRateAnswer } from '../taxes/schema.ts';

const share = {
  cost: decimalText.meta({ description: 'What of the amount of the line is for it; the costs add up to that.' }),
  usage: decimalText.meta({ description: 'What was used.' }),
  percentage: decimalText.meta({ description: 'Its share of the usage, in percent with two decimals.' }),
  event_count: z.int().meta({ description: 'How many events were counted.' }),
};
const SourceUsageItem = z
  .object({ source: z.string().meta({ description: 'Where the events came from; empty without.' }), ...share })
  .meta({ id: 'SourceUsageItem' });
const UsageBreakdownItem = z
  .object({
    grouped_by: z
      .record(z.string(), z.string())
      .meta({ description: 'What its events have in common: source, feature_id or properties by their names.' }),
    ...share,
  })
  .meta({ id: 'UsageBreakdownItem' });

/** Broken down only where it is asked for. */
export const InvoiceLineAnswer = InvoiceLineItem.extend({
  usage_analytics: z.array(SourceUsageItem).nullable().meta({
    description: 'By source, where `expand_by_source` asks for it; null else, and of what no meter measured.',
  }),
  usage_breakdown: z
    .array(UsageBreakdownItem)
    .nullable()
    .meta({ description: 'By the groups of `group_by`; null without, and of what no meter measured.' }),
}).meta({ id: 'InvoiceLineItemResponse' });

const CouponApplicationAnswer = CouponApplication.meta({ id: 'CouponApplicationResponse' });
const TaxAppliedAnswer = TaxApplied.extend({
  tax_rate: TaxRateAnswer.nullable().meta({ description: 'The rate.' }),
}).meta({ id: 'TaxAppliedResponse' });

/** As shown inside of another record. */
export const InvoiceWithoutParts = Invoice.extend({
  line_items: z
    .array(InvoiceLineAnswer)
    .nullable()
    .meta({ description: 'Where they are answered with the invoice; null in a list without them.' }),
  subscription: z.null().meta({ description: 'Not shown inside of another record: null.' }),
  customer: z.null().meta({ description: 'Not shown inside of another record: null.' }),
  taxes: z
    .array(TaxAppliedAnswer)
    .nullable()
    .meta({ description: 'What rates came to; of one invoice, or where `expand` names tax_applied.' }),
  coupon_applications: z
    .array(CouponApplicationAnswer)
    .nullable()
    .meta({ description: 'What coupons took off; of one invoice, or where `expand` names coupon_applications.' }),
});
