/** Requests, answers and lists of credit notes. */
import { z } from 'zod';
import { anyCase } from '../../../core/foundation/record.ts';
import {
  CREDIT_NOTE_STATUSES,
  CREDIT_NOTE_TYPES,
  CreditNote,
  CreditNoteLineItem,
  createCreditNoteShape,
} from '../../../core/invoicing/credit-note/record.ts';
import { CustomerAnswer } from '../../catalog/customers/schema.ts';
import {
  BASE_COLUMNS,
  commaSeparatedList,
  type ListGrammar,
  listAnswer,
  listShape,
  matchAny,
} from '../../http/list.ts';
import { MessageAnswer } from '../../http/route.ts';
import { SubscriptionAnswer } from '../../subscriptions/answer.ts';
import { InvoiceWithoutParts } from '../../subscriptions/invoice-answer.ts';

export const CreateCreditNote = createCreditNoteShape.meta({
  id: 'CreateCreditNoteRequest',
  example: {
    invoice_id: 'inv_01JZ8K3M5N7P9Q1R3S5T7V9W8X',
    reason: 'SERVICE_ISSUE',
    memo: 'The trainer was late',
    credit_note_number: 'CN-2026-7',
    idempotency_key: 'ticket-4711',
    process_credit_note: false,
    line_items: [{ invoice_line_item_id: 'inv_line_01JZ8K3M5N7P9Q1R3S5T7V9WFX', amount: '10' }],
  },
});

const shown = { description: 'Record of a single credit note; in a list only if `expand` names it. Null otherwise.' };
export const CreditNoteAnswer = CreditNote.extend({
  line_items: z.array(CreditNoteLineItem.meta({ id: 'CreditNoteLineItem' })).meta({ description: 'Credited lines.' }),
  invoice: InvoiceWithoutParts.nullable().meta(shown),
  subscription: SubscriptionAnswer.nullable().meta(shown),
  customer: CustomerAnswer.nullable().meta(shown),
}).meta({ id: 'CreditNoteResponse' });

/** Credit note after an action, with a message about it. */
export const CreditNoteDone = CreditNoteAnswer.extend(MessageAnswer.shape).meta({ id: 'CreditNoteDoneResponse' });

export const CreditNoteFilter = listShape({
  credit_note_ids: matchAny('credit notes'),
  invoice_id: z.string().optional().meta({ description: 'Id of the credited invoice.' }),
  credit_note_status: commaSeparatedList(anyCase(CREDIT_NOTE_STATUSES))
    .optional()
    .meta({ description: 'Matches any of these statuses.' }),
  credit_note_type: anyCase(CREDIT_NOTE_TYPES).optional().meta({ description: 'Type: ADJUSTMENT or REFUND.' }),
}).meta({ id: 'CreditNoteFilter', example: { credit_note_status: ['FINALIZED'], limit: 10 } });
export type CreditNoteFilter = z.output<typeof CreditNoteFilter>;

export const creditNoteGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    credit_note_number: 'string',
    invoice_id: 'string',
    customer_id: 'string',
    subscription_id: 'string',
    credit_note_status: 'string',
    credit_note_type: 'string',
    refund_status: 'string',
    reason: 'string',
    memo: 'string',
    currency: 'string',
    subtotal: 'number',
    total_tax: 'number',
    total_amount: 'number',
    idempotency_key: 'string',
    voided_at: 'date',
    finalized_at: 'date',
  },
  expand: ['invoice', 'subscription', 'customer'],
  metadata: true,
};
export const CreditNoteListAnswer = listAnswer(CreditNoteAnswer, 'ListCreditNotesResponse');
