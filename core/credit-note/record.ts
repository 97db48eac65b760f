/** A credit note: what of a final invoice is taken back, line by line, and why (docs/rules/credit-notes.md). */
import { z } from 'zod';
import { PAYMENT_STATUSES } from '../invoice/record.ts';
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
} from '../record.ts';

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
  credit_note_id: z.string().meta({ description: 'The credit note on which it stands.' }),
  invoice_line_item_id: z.string().meta({ description: 'The line of the invoice that is credited.' }),
  display_name: z.string().meta({ description: 'What people read; that of the credited line unless stated.' }),
  amount: decimalText.meta({ description: 'What is credited of the charge, before tax.' }),
  tax_amount: decimalText.meta({ description: 'The share of the tax of the line that is credited with it.' }),
  prepaid_credits_returned: decimalText.meta({
    description: 'The share of `amount` that prepaid credits had paid: it returns to their lots.',
  }),
  currency: z.string().meta({ description: 'That of the invoice.' }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  ...baseFields,
});
export type CreditNoteLineItem = z.infer<typeof CreditNoteLineItem>;

export const CreditNote = z.object({
  id: z.string(),
  credit_note_number: z.string().meta({ description: 'As it was stated, or one of its own: CN- and nine characters.' }),
  invoice_id: z.string().meta({ description: 'The invoice that is credited.' }),
  customer_id: z.string().meta({ description: 'The customer to whom the invoice went.' }),
  subscription_id: z.string().nullish().meta({ description: 'The subscription of the invoice; null without one.' }),
  change_invoice_id: z.string().nullish().meta({
    description:
      'The invoice of a change, a cancellation or a correction whose credit this adjustment spends; null of a note that a person made.',
  }),
  credit_note_status: z.enum(CREDIT_NOTE_STATUSES).meta({
    description: 'A DRAFT has no effect yet; FINALIZED has; a VOIDED one has none any more.',
  }),
  credit_note_type: z.enum(CREDIT_NOTE_TYPES).meta({
    description:
      'An ADJUSTMENT lowers what is due, a REFUND puts what was paid into the prepaid wallet. Both return prepaid credits to their lots.',
  }),
  refund_status: z
    .enum(PAYMENT_STATUSES)
    .nullish()
    .meta({ description: 'SUCCEEDED when the wallet has the refund; null before, and of an adjustment.' }),
  reason: z.enum(CREDIT_NOTE_REASONS).meta({ description: 'Why it was made.' }),
  memo: z.string().meta({ description: 'For people.' }),
  currency: z.string().meta({ description: 'That of the invoice.' }),
  subtotal: decimalText.meta({ description: 'The sum of its lines, before tax.' }),
  total_tax: decimalText.meta({ description: 'The tax that is credited with them.' }),
  total_amount: decimalText.meta({ description: 'What is given back in all: `subtotal` and `total_tax`.' }),
  total_prepaid_credits_returned: decimalText.meta({
    description:
      'What of `total_amount` prepaid credits had paid: it returns to their lots. The rest lowers what is due, or goes to the wallet with its tax.',
  }),
  idempotency_key: z.string().nullish().meta({ description: 'One key is one credit note, voided ones aside.' }),
  voided_at: timestampText.nullish().meta({ description: 'When it was voided; null while it was not.' }),
  finalized_at: timestampText.nullish().meta({ description: 'When it took effect; null before.' }),
  metadata: metadata.nullish().meta({ description: 'Pairs of your own; null without.' }),
  ...baseFields,
});
export type CreditNote = z.infer<typeof CreditNote>;

const createLineShape = z.object({
  invoice_line_item_id: z.string().min(1).meta({ description: 'The line of the invoice that is credited.' }),
  amount: decimalText.meta({
    description: 'What is credited of the charge, before tax: more than 0, and no more than is left of the line.',
  }),
  display_name: orNull(keyText).meta({ description: 'What people read; that of the credited line when absent.' }),
  metadata,
});

/** Of notes without a key of their own: made of what they say. */
const CONTENT_KEYS = /^content\/[0-9a-f]{32}$/;

export const createCreditNoteShape = z.object({
  invoice_id: z.string().min(1).meta({ description: 'A final invoice.' }),
  reason: anyCase(CREDIT_NOTE_REASONS).meta({ description: 'Why it is made.' }),
  line_items: orNull(z.array(createLineShape).max(1000)).meta({ description: 'What is credited: one line at least.' }),
  memo: orNull(z.string().max(5000)).meta({ description: 'For people.' }),
  credit_note_number: orNull(keyText).meta({
    description: 'A number of your own; CN- and nine characters when absent.',
  }),
  idempotency_key: orNull(keyNotMatching(CONTENT_KEYS)).meta({
    description: 'One key is one credit note, voided ones aside; made of what is credited when absent.',
  }),
  process_credit_note: orDefault(z.boolean(), true).meta({
    description: 'Final at once; a draft when false.',
  }),
  metadata,
});
export type CreateCreditNote = z.output<typeof createCreditNoteShape>;
