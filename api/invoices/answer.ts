/** An invoice as it is answered; its customer and subscription only where they are asked for. */
import { z } from 'zod';
import { Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';

/** Usage breakdowns are not kept yet: their keys are there for the published client. */
export const InvoiceLineAnswer = InvoiceLineItem.extend({
  usage_analytics: z.null(),
  usage_breakdown: z.null(),
}).meta({ id: 'InvoiceLineItemResponse' });

/** As shown inside of another record. */
export const InvoiceWithoutParts = Invoice.extend({
  line_items: z.array(InvoiceLineAnswer).nullable(),
  subscription: z.null(),
  customer: z.null(),
  taxes: z.null(),
  coupon_applications: z.null(),
});
