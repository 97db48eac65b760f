/** An invoice as it is answered; its customer and subscription only where they are asked for. */
import { z } from 'zod';
import { CouponApplication } from '../../core/coupon/application.ts';
import { Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';
import { TaxApplied } from '../../core/tax/applied.ts';
import { TaxRateAnswer } from '../taxes/schema.ts';

/** Usage breakdowns are not kept yet: their keys are there for the published client. */
export const InvoiceLineAnswer = InvoiceLineItem.extend({
  usage_analytics: z.null().meta({ description: 'Not there yet: null.' }),
  usage_breakdown: z.null().meta({ description: 'Not there yet: null.' }),
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
