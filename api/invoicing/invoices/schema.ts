import { z } from 'zod';
import { anyCase, decimalText, metadata, orDefault, orNull, timestampText } from '../../../core/foundation/record.ts';
import { editInvoiceShape } from '../../../core/invoicing/invoice/edit.ts';
import {
  billingReason,
  createInvoiceShape,
  INVOICE_STATUSES,
  INVOICE_TYPES,
  PAYMENT_STATUSES,
  updateInvoicePaymentShape,
  updateInvoiceShape,
} from '../../../core/invoicing/invoice/record.ts';
import { CustomerAnswer } from '../../catalog/customers/schema.ts';
import { WorkflowResult } from '../../foundation/workflows/schema.ts';
import {
  commaSeparatedList,
  expand,
  flag,
  type ListGrammar,
  listAnswer,
  listShape,
  matchAny,
  textList,
} from '../../http/list.ts';
import { MessageAnswer } from '../../http/route.ts';
import { SubscriptionAnswer } from '../../subscriptions/answer.ts';
import { InvoiceWithoutParts } from '../../subscriptions/invoice-answer.ts';

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
    description: 'Present for a single invoice; in a list only if `expand` names it.',
  }),
  customer: CustomerAnswer.nullable().meta({
    description: 'Present for a single invoice; in a list only if `expand` names it.',
  }),
}).meta({ id: 'InvoiceResponse' });

export const PreviewInvoice = z
  .object({
    subscription_id: z.string().min(1).meta({ description: 'Id of the subscription whose next invoice is previewed.' }),
    period_start: orNull(timestampText).meta({
      description: 'Start of the period. Default: start of the current period.',
    }),
    period_end: orNull(timestampText).meta({
      description: 'End of the period. Default: end of the current period.',
    }),
    hide_zero_charges_line_items: orDefault(z.boolean(), false).meta({
      description: 'True omits lines without cost. Default false.',
    }),
  })
  .meta({ id: 'GetPreviewInvoiceRequest', example: { subscription_id: 'subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X' } });

/** Body of a computation: fields of the invoice to edit. Without a body the invoice is computed from its subscription. */
export const ComputeInvoice = editInvoiceShape
  .nullish()
  .meta({ id: 'InvoiceComputeRequest', example: { description: 'As agreed on the phone' } });
const yes = z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0', ''] });
export const ComputeQuery = z.object({
  sync: yes.default(false).meta({ description: 'True computes at once and returns the invoice. Default false.' }),
});

/** Result of a synchronous computation (200), or the ids of the background work (202). */
export const ComputeAnswer = z.union([
  z
    .object({
      invoice: InvoiceAnswer.meta({ description: 'The invoice after the computation.' }),
      skipped: z.boolean().meta({ description: 'True if the invoice has no charges and was skipped.' }),
    })
    .meta({ id: 'ComputeInvoiceResponse' }),
  WorkflowResult,
]);

export const VoidInvoice = z
  .object({ metadata })
  .nullish()
  .meta({ id: 'InvoiceVoidRequest', example: { metadata: { reason: 'sent to the wrong address' } } });

export const FinalizeQuery = z.object({
  finalize: yes
    .default(false)
    .meta({ description: 'True finalizes the invoice at once; false leaves a draft. Default false.' }),
});
export const ResendWebhookQuery = z.object({
  event_name: z
    .string()
    .min(1)
    .meta({
      description:
        'Event to send: invoice.update.finalized, invoice.update.payment, invoice.update.voided or ' +
        'invoice.communication.triggered. Another name is refused.',
      example: 'invoice.update.finalized',
    }),
});
export const WebhookResentAnswer = MessageAnswer.extend({
  event_name: z.string().meta({ description: 'Name of the event that was sent.' }),
}).meta({ id: 'InvoiceWebhookTriggerResponse' });
export const invoiceIdParams = z.object({ invoice_id: z.string().min(1).meta({ description: 'Id of the draft.' }) });

export const InvoiceQuery = z.object({
  expand,
  group_by: textList.optional().meta({
    description:
      'Keys that break usage lines down into groups, one or several: source, feature_id or properties.<name>.',
    example: ['source', 'properties.region'],
  }),
  expand_by_source: yes
    .default(false)
    .meta({ description: 'True also breaks usage lines down by source, in `usage_analytics`. Default false.' }),
  force_runtime_recalculation: yes.default(false).meta({
    description: 'Accepted without effect: groups are counted again on every request. Default false.',
  }),
});

const FILTERED_PAYMENT_STATUSES = [...PAYMENT_STATUSES, 'OVERDUE'] as const;

export const InvoiceFilter = listShape({
  invoice_ids: matchAny('invoices'),
  customer_id: z.string().optional().meta({ description: 'Id of the customer who pays.' }),
  external_customer_id: z
    .string()
    .optional()
    .meta({ description: 'External id of the customer. Archived customers with this id are included.' }),
  subscription_id: z.string().optional().meta({ description: 'Id of the subscription.' }),
  subscription_customer_id: matchAny('customers who use the subscription'),
  invoice_type: anyCase(INVOICE_TYPES).optional().meta({ description: 'SUBSCRIPTION, ONE_OFF or CREDIT.' }),
  currency: z.string().optional().meta({ description: 'Currency code (ISO 4217), case-insensitive.' }),
  invoice_status: commaSeparatedList(anyCase(INVOICE_STATUSES))
    .optional()
    .meta({ description: 'Matches any of these statuses. Default: all except SKIPPED.' }),
  payment_status: commaSeparatedList(anyCase(FILTERED_PAYMENT_STATUSES)).optional().meta({
    description:
      'Matches any of these payment statuses. OVERDUE matches final invoices with an unpaid amount after their due date.',
  }),
  overdue: flag.optional().meta({
    description:
      'True matches final invoices with an unpaid amount after their due date, false all others. Default: both.',
  }),
  billing_reason: billingReason.optional().meta({ description: 'Billing reason of the invoice.' }),
  amount_due_gt: decimalText.optional().meta({ description: 'Matches invoices whose amount due is above this value.' }),
  amount_remaining_gt: decimalText
    .optional()
    .meta({ description: 'Matches invoices whose unpaid amount is above this value.' }),
  period_start_gte: timestampText
    .optional()
    .meta({ description: 'Matches periods that begin at this instant or later.' }),
  period_start_lte: timestampText
    .optional()
    .meta({ description: 'Matches periods that begin at this instant or earlier.' }),
  period_end_gte: timestampText.optional().meta({ description: 'Matches periods that end at this instant or later.' }),
  period_end_lte: timestampText
    .optional()
    .meta({ description: 'Matches periods that end at this instant or earlier.' }),
  skip_line_items: flag.default(false).meta({ description: 'True omits line items from the answer. Default false.' }),
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
    customer_id: z.string().meta({ description: 'Id of the invoiced customer.' }),
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
    total_revenue_amount: decimalText.meta({ description: 'Total of the final invoices.' }),
    total_unpaid_amount: decimalText.meta({ description: 'Part of the total that is unpaid.' }),
    total_overdue_amount: decimalText.meta({ description: 'Part of the unpaid amount that is past its due date.' }),
    total_invoice_count: z.int().meta({ description: 'Number of final invoices.' }),
    unpaid_invoice_count: z.int().meta({ description: 'Number of invoices that are not fully paid.' }),
    overdue_invoice_count: z.int().meta({ description: 'Number of unpaid invoices past their due date.' }),
    unpaid_usage_charges: decimalText.meta({ description: 'Usage charges of the unpaid invoices.' }),
    unpaid_fixed_charges: decimalText.meta({ description: 'Other charges of the unpaid invoices.' }),
  })
  .meta({ id: 'CustomerInvoiceSummary' });

export const InvoiceSummaryAnswer = z
  .object({
    customer_id: z.string().meta({ description: 'Id of the invoiced customer.' }),
    default_currency: z.string().meta({ description: 'Currency of the first summary; empty without invoices.' }),
    summaries: z.array(CustomerInvoiceSummary).meta({ description: 'One summary per currency.' }),
  })
  .meta({ id: 'CustomerMultiCurrencyInvoiceSummary' });
