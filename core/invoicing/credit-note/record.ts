/** A credit note credits lines of a final invoice, with a reason (docs/rules/credit-notes.md). */
import { z } from 'zod';
import {
  anyCase,
  baseFields,
  decimalText,
  keyNotMatching,
  keyText,
  metadata,
  orDefault,
  orNull,
  timestampText,
} from '../../foundation/record.ts';
import { PAYMENT_STATUSES } from '../invoice/record.ts';

export const CREDIT_NOTE_STATUSES = ['DRAFT', 'FINALIZED', 'VOIDED'] as const;
export const CREDIT_NOTE_TYPES = ['ADJUSTMENT', 'REFUND'] as const;
export const CREDIT_NOTE_REASONS = [
  'DUPLICATE',
  'FRAUDULENT',
  'ORDER_CHANGE',
  'UNSATISFACTORY',
  'SERVICE_ISSUE',
  'BILLING_ERROR',
  'SUBSCRIPTION_CANCELLATION',
] as const;
export type CreditNoteType = (typeof CREDIT_NOTE_TYPES)[number];

export const CreditNoteLineItem = z.object({
  id: z.string(),
  credit_note_id: z.string().meta({ description: 'Credit note of the line.' }),
  invoice_line_item_id: z.string().meta({ description: 'Invoice line that is credited.' }),
  display_name: z.string().meta({ description: 'Text on the note. Default: the text of the credited line.' }),
  amount: decimalText.meta({ description: 'Credited amount of the charge, before tax.' }),
  tax_amount: decimalText.meta({ description: 'Credited share of the line’s tax.' }),
  prepaid_credits_returned: decimalText.meta({
    description: 'Part of `amount` that prepaid credits had paid. It returns to their lots.',
  }),
  currency: z.string().meta({ description: 'Currency of the invoice.' }),
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  ...baseFields,
});
export type CreditNoteLineItem = z.infer<typeof CreditNoteLineItem>;

export const CreditNote = z.object({
  id: z.string(),
  credit_note_number: z.string().meta({
    description:
      'Number from the request; else the next number of the environment when the note takes effect, and until then CN-DRAFT- and nine characters.',
  }),
  invoice_id: z.string().meta({ description: 'Invoice that is credited.' }),
  customer_id: z.string().meta({ description: 'Customer who received the invoice.' }),
  subscription_id: z.string().nullish().meta({ description: 'Subscription of the invoice; null without one.' }),
  change_invoice_id: z.string().nullish().meta({
    description:
      'Invoice of a change, a cancellation or a correction whose credit this adjustment applies; null for a note by request.',
  }),
  credit_note_status: z.enum(CREDIT_NOTE_STATUSES).meta({
    description: 'Status. A DRAFT has no effect yet; FINALIZED has effect; VOIDED has no effect any more.',
  }),
  credit_note_type: z.enum(CREDIT_NOTE_TYPES).meta({
    description:
      'Type. An ADJUSTMENT lowers the amount due; a REFUND credits the prepaid wallet. Both return prepaid credits to their lots.',
  }),
  refund_status: z.enum(PAYMENT_STATUSES).nullish().meta({
    description:
      'Status of the refund: SUCCEEDED once the wallet has the amount; null before that, and for an adjustment.',
  }),
  reason: z.enum(CREDIT_NOTE_REASONS).meta({ description: 'Reason of the note.' }),
  memo: z.string().meta({ description: 'Note for readers.' }),
  currency: z.string().meta({ description: 'Currency of the invoice.' }),
  subtotal: decimalText.meta({ description: 'Sum of the lines, before tax.' }),
  total_tax: decimalText.meta({ description: 'Tax credited with the lines.' }),
  total_amount: decimalText.meta({ description: 'Credited amount in all: `subtotal` plus `total_tax`.' }),
  total_prepaid_credits_returned: decimalText.meta({
    description:
      'Part of `total_amount` that prepaid credits had paid; it returns to their lots. The rest lowers the amount due, or goes to the wallet with its tax.',
  }),
  idempotency_key: z
    .string()
    .nullish()
    .meta({ description: 'Idempotency key. It identifies one credit note, voided ones excepted.' }),
  voided_at: timestampText
    .nullish()
    .meta({ description: 'Instant at which the credit note was voided; null otherwise.' }),
  finalized_at: timestampText
    .nullish()
    .meta({ description: 'Instant at which the credit note took effect; null before.' }),
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  ...baseFields,
});
export type CreditNote = z.infer<typeof CreditNote>;

const createLineShape = z.object({
  invoice_line_item_id: z.string().min(1).meta({ description: 'Invoice line that is credited.' }),
  amount: decimalText.meta({
    description:
      'Credited amount of the charge, before tax. It is more than 0; an amount above the rest of the line is refused.',
  }),
  display_name: orNull(keyText).meta({ description: 'Text on the note. Default: the text of the credited line.' }),
  metadata,
});

/** Form of the keys that are derived from the content of a note without a key. */
const CONTENT_KEYS = /^content\/[0-9a-f]{32}$/;

export const createCreditNoteShape = z.object({
  invoice_id: z.string().min(1).meta({ description: 'Final invoice; any other is refused.' }),
  reason: anyCase(CREDIT_NOTE_REASONS).meta({ description: 'Reason of the note.' }),
  line_items: orNull(z.array(createLineShape).max(1000)).meta({ description: 'Lines to credit, 1 to 1,000.' }),
  memo: orNull(z.string().max(5000)).meta({ description: 'Note for readers, at most 5,000 characters.' }),
  credit_note_number: orNull(keyText).meta({
    description: 'Your own unique number. Default: the next number, such as CN-202602-00001.',
  }),
  idempotency_key: orNull(keyNotMatching(CONTENT_KEYS)).meta({
    description:
      'Idempotency key. It identifies one credit note, voided ones excepted. Default: derived from the content of the note.',
  }),
  process_credit_note: orDefault(z.boolean(), true).meta({
    description: 'True to finalize the note at once, false to create a draft. Default: true.',
  }),
  metadata,
});
export type CreateCreditNote = z.output<typeof createCreditNoteShape>;

/** Number of a draft without one of its own, until it is finalized. */
export function formatDraftNumber(id: string): string {
  return `CN-DRAFT-${id.slice(-9)}`;
}
