/** Requests, answers and lists of invoices. */
import { z } from 'zod';
import { editInvoiceShape } from '../../core/invoice/edit.ts';
import {
  billingReason,
  createInvoiceShape,
  INVOICE_STATUSES,
  INVOICE_TYPES,
  paymentStatus,
  updateInvoicePaymentShape,
  updateInvoiceShape,
} from '../../core/invoice/record.ts';
import { anyCase, decimalText, metadata, orDefault, orNull, timestampText } from '../../core/record.ts';
import { CustomerAnswer } from '../customers/schema.ts';
import {
  commaSeparatedList,
  expand,
  flag,
  type ListGrammar,
  listAnswer,
  listShape,
  matchAny,
  textList,
} from '../http/list.ts';
import { MessageAnswer } from '../http/route.ts';
import { SubscriptionAnswer } from '../subscriptions/answer.ts';
import { WorkflowResult } from '../workflows/schema.ts';
import { InvoiceWithoutParts } from './answer.ts';

export const CreateInvoice = createInvoiceShape.meta({
  id: 'CreateInvoiceRequest',
  example: {
    customer_id: 'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
    currency: 'usd',
    subtotal: '30',
    total: '30',
    amount_due: '30',
    line_items: [{ display_name: 'Onboarding', quantity: '1', amount: '30' }],
  },
});
export const UpdateInvoice = updateInvoiceShape.meta({
  id: 'UpdateInvoiceRequest',
  example: { metadata: { order: 'PO-7' } },
});
export const UpdatePayment = updateInvoicePaymentShape.meta({
  id: 'UpdatePaymentStatusRequest',
  example: { payment_status: 'SUCCEEDED' },
});

export const InvoiceAnswer = InvoiceWithoutParts.extend({
  subscription: SubscriptionAnswer.nullable().meta({
    description: 'With one invoice; in a list where `expand` names it.',
  }),
  customer: CustomerAnswer.nullable().meta({ description: 'With one invoice; in a list where `expand` names it.' }),
}).meta({ id: 'InvoiceResponse' });

export const PreviewInvoice = z
  .object({
    subscription_id: z.string().min(1).meta({ description: 'The subscription whose next invoice is shown.' }),
    period_start: orNull(timestampText).meta({
      description: 'The start of the period; that of the running one when absent.',
    }),
    period_end: orNull(timestampText).meta({
      description: 'The end of the period; that of the running one when absent.',
    }),
    hide_zero_charges_line_items: orDefault(z.boolean(), false).meta({
      description: 'Leaves out lines that cost nothing.',
    }),
  })
  .meta({ id: 'GetPreviewInvoiceRequest', example: { subscription_id: 'subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X' } });

/** Without it an invoice is computed from its subscription; what it states is an edit. */
export const ComputeInvoice = editInvoiceShape
  .nullish()
  .meta({ id: 'InvoiceComputeRequest', example: { description: 'As agreed on the phone' } });
const yes = z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0', ''] });
export const ComputeQuery = z.object({
  sync: yes.default(false).meta({ description: 'Computed at once, and answered with the invoice.' }),
});

export const PdfQuery = z.object({
  url: yes.default(false).meta({ description: 'An address of the PDF, in the place of the PDF itself.' }),
  force_generate: yes.default(false).meta({ description: 'Made anew, with the settings of now, whatever is kept.' }),
});
export const PdfAddressAnswer = z
  .object({ presigned_url: z.string().meta({ description: 'Good for a quarter of an hour, without a key.' }) })
  .meta({ id: 'InvoicePdfAddress' });

/** Computed at once (200), or the ids under which the work is known (202). */
export const ComputeAnswer = z.union([
  z
    .object({
      invoice: InvoiceAnswer.meta({ description: 'As it is now.' }),
      skipped: z.boolean().meta({ description: 'Whether it comes to nothing.' }),
    })
    .meta({ id: 'ComputeInvoiceResponse' }),
  WorkflowResult,
]);

export const VoidInvoice = z
  .object({ metadata })
  .nullish()
  .meta({ id: 'InvoiceVoidRequest', example: { metadata: { reason: 'sent to the wrong address' } } });

export const FinalizeQuery = z.object({
  finalize: yes.default(false).meta({ description: 'Final at once; a draft otherwise.' }),
});
export const ResendWebhookQuery = z.object({
  event_name: z.string().min(1).meta({
    description:
      'What is told: invoice.update.finalized, invoice.update.payment, invoice.update.voided or invoice.communication.triggered.',
    example: 'invoice.update.finalized',
  }),
});
export const WebhookResentAnswer = MessageAnswer.extend({
  event_name: z.string().meta({ description: 'The name under which it is told.' }),
}).meta({ id: 'InvoiceWebhookTriggerResponse' });
export const invoiceIdParams = z.object({ invoice_id: z.string().min(1).meta({ description: 'The id of a draft.' }) });

export const InvoiceQuery = z.object({
  expand,
  group_by: textList.optional().meta({
    description: 'Breaks the lines of usage down by source, feature_id or properties.<name>, one or several.',
    example: ['source', 'properties.region'],
  }),
  expand_by_source: yes.default(false).meta({ description: 'Breaks them down by source in `usage_analytics`, too.' }),
  force_runtime_recalculation: yes.default(false).meta({
    description: 'Counts the groups anew; they are counted anew with every request anyway.',
  }),
});

export const InvoiceFilter = listShape({
  invoice_ids: matchAny('invoices'),
  customer_id: z.string().optional().meta({ description: 'Id of the customer who pays.' }),
  external_customer_id: z
    .string()
    .optional()
    .meta({ description: 'The customer by the id that its events name; archived ones of this id, too.' }),
  subscription_id: z.string().optional().meta({ description: 'Id of the subscription.' }),
  subscription_customer_id: matchAny('customers, who use the subscription'),
  invoice_type: anyCase(INVOICE_TYPES).optional().meta({ description: 'SUBSCRIPTION, ONE_OFF or CREDIT.' }),
  currency: z.string().optional().meta({ description: 'As ISO 4217 has it, in any case.' }),
  invoice_status: commaSeparatedList(anyCase(INVOICE_STATUSES))
    .optional()
    .meta({ description: 'Any of these states; all but SKIPPED when absent.' }),
  payment_status: commaSeparatedList(paymentStatus).optional().meta({ description: 'Any of these states.' }),
  billing_reason: billingReason.optional().meta({ description: 'Why the invoice was made.' }),
  amount_due_gt: decimalText.optional().meta({ description: 'More than this is due.' }),
  amount_remaining_gt: decimalText.optional().meta({ description: 'More than this remains to be paid.' }),
  period_start_gte: timestampText.optional().meta({ description: 'The period begins at this instant or later.' }),
  period_start_lte: timestampText.optional().meta({ description: 'The period begins at this instant or before.' }),
  period_end_gte: timestampText.optional().meta({ description: 'The period ends at this instant or later.' }),
  period_end_lte: timestampText.optional().meta({ description: 'The period ends at this instant or before.' }),
  skip_line_items: flag.default(false).meta({ description: 'Answers without line items.' }),
}).meta({ id: 'InvoiceFilter', example: { external_customer_id: 'acme', invoice_status: ['FINALIZED'], limit: 10 } });
export type InvoiceFilter = z.output<typeof InvoiceFilter>;

export const invoiceGrammar: ListGrammar = {
  columns: {
    id: 'string',
    customer_id: 'string',
    subscription_id: 'string',
    invoice_type: 'string',
    invoice_status: 'string',
    payment_status: 'string',
    billing_reason: 'string',
    currency: 'string',
    subtotal: 'number',
    total: 'number',
    amount_due: 'number',
    amount_paid: 'number',
    amount_remaining: 'number',
    invoice_number: 'string',
    idempotency_key: 'string',
    billing_sequence: 'number',
    description: 'string',
    billing_period: 'string',
    period_start: 'date',
    period_end: 'date',
    issue_date: 'date',
    due_date: 'date',
    paid_at: 'date',
    voided_at: 'date',
    finalized_at: 'date',
    version: 'number',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: [
    'subscription',
    'subscription.plan',
    'customer',
    'coupon_applications',
    'coupon_applications.coupon',
    'tax_applied',
    'tax_applied.tax_rate',
  ],
  metadata: true,
};
export const InvoiceListAnswer = listAnswer(InvoiceAnswer, 'ListInvoicesResponse');

const CustomerInvoiceSummary = z
  .object({
    customer_id: z.string().meta({ description: 'The customer to whom the invoices went.' }),
    currency: z.string().meta({ description: 'As ISO 4217 has it, in small letters.' }),
    total_revenue_amount: decimalText.meta({ description: 'What final invoices come to in all.' }),
    total_unpaid_amount: decimalText.meta({ description: 'What of them remains to be paid.' }),
    total_overdue_amount: decimalText.meta({ description: 'What of that is behind its due date.' }),
    total_invoice_count: z.int().meta({ description: 'How many final invoices there are.' }),
    unpaid_invoice_count: z.int().meta({ description: 'How many of them are not paid in full.' }),
    overdue_invoice_count: z.int().meta({ description: 'How many of those are behind their due date.' }),
    unpaid_usage_charges: decimalText.meta({ description: 'What of the unpaid ones is for usage.' }),
    unpaid_fixed_charges: decimalText.meta({ description: 'What of the unpaid ones is for anything else.' }),
  })
  .meta({ id: 'CustomerInvoiceSummary' });

export const InvoiceSummaryAnswer = z
  .object({
    customer_id: z.string().meta({ description: 'The customer to whom the invoices went.' }),
    default_currency: z.string().meta({ description: 'That of the first summary; empty without invoices.' }),
    summaries: z.array(CustomerInvoiceSummary).meta({ description: 'One for each currency.' }),
  })
  .meta({ id: 'CustomerMultiCurrencyInvoiceSummary' });
