/** Answer shape of an invoice. Customer and subscription are present only if they are expanded. */
import { z } from 'zod';
import { CouponApplication } from '../../core/catalog/coupon/application.ts';
import { TaxApplied } from '../../core/catalog/tax/applied.ts';
import { decimalText } from '../../core/foundation/record.ts';
import { Invoice, InvoiceLineItem } from '../../core/invoicing/invoice/record.ts';
import { TaxRateAnswer } from '../catalog/taxes/schema.ts';

const share = {
  cost: decimalText.meta({ description: "Share of the line's amount. The shares of a line add up to its amount." }),
  usage: decimalText.meta({ description: 'Usage in the group.' }),
  percentage: decimalText.meta({ description: "Share of the line's usage, in percent with two decimals." }),
  event_count: z.int().meta({ description: 'Number of events counted.' }),
};
const SourceUsageItem = z
  .object({ source: z.string().meta({ description: 'Source of the events; empty for events without one.' }), ...share })
  .meta({ id: 'SourceUsageItem' });
const UsageBreakdownItem = z
  .object({
    grouped_by: z.record(z.string(), z.string()).meta({
      description: 'Values that the events of the group share: source, feature_id or properties, keyed by name.',
    }),
    ...share,
  })
  .meta({ id: 'UsageBreakdownItem' });

/** `usage_analytics` and `usage_breakdown` are computed only on request. */
const InvoiceLineAnswer = InvoiceLineItem.extend({
  usage_analytics: z.array(SourceUsageItem).nullable().meta({
    description: 'Breakdown by source. Null without `expand_by_source`, and for lines that no meter measured.',
  }),
  usage_breakdown: z.array(UsageBreakdownItem).nullable().meta({
    description:
      'Breakdown by the groups of `group_by`. Null without `group_by`, and for lines that no meter measured.',
  }),
}).meta({ id: 'InvoiceLineItemResponse' });

const CouponApplicationAnswer = CouponApplication.meta({ id: 'CouponApplicationResponse' });
const TaxAppliedAnswer = TaxApplied.extend({
  tax_rate: TaxRateAnswer.nullable().meta({ description: 'The tax rate.' }),
}).meta({ id: 'TaxAppliedResponse' });

/** Invoice shape inside another record. */
export const InvoiceWithoutParts = Invoice.extend({
  line_items: z
    .array(InvoiceLineAnswer)
    .nullable()
    .meta({ description: 'Lines of the invoice; null in a list with `skip_line_items`.' }),
  subscription: z.null().meta({ description: 'Always null inside another record.' }),
  customer: z.null().meta({ description: 'Always null inside another record.' }),
  taxes: z.array(TaxAppliedAnswer).nullable().meta({
    description:
      'Taxes of the invoice. Present for a single invoice, or in a list if `expand` names tax_applied; else null.',
  }),
  coupon_applications: z.array(CouponApplicationAnswer).nullable().meta({
    description:
      'Discounts by coupon. Present for a single invoice, or in a list if `expand` names coupon_applications; else null.',
  }),
});
