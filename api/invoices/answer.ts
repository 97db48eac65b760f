/** An invoice as it is answered; its customer and subscription only where they are asked for. */
import { z } from 'zod';
import { Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';

/** Usage breakdowns are not kept yet: their keys are there for the published client. */
export const InvoiceLineAnswer = InvoiceLineItem.extend({
  usage_analytics: z.null().meta({ description: 'Not there yet: null.' }),
  usage_breakdown: z.null().meta({ description: 'Not there yet: null.' }),
}).meta({ id: 'InvoiceLineItemResponse' });

/** As shown inside of another record. */
export const InvoiceWithoutParts = Invoice.extend({
  line_items: z
    .array(InvoiceLineAnswer)
    .nullable()
    .meta({ description: 'Where they are answered with the invoice; null in a list without them.' }),
  subscription: z.null().meta({ description: 'Not shown inside of another record: null.' }),
  customer: z.null().meta({ description: 'Not shown inside of another record: null.' }),
  taxes: z.null().meta({ description: 'Taxes are not there yet: null.' }),
  coupon_applications: z.null().meta({ description: 'Coupons are not there yet: null.' }),
});
