/** Credit notes: credited amounts of final invoices. */
import { createCreditNote, previewCreditNote } from '../../../actions/lifecycle/credit-notes/create-credit-note.ts';
import { finalizeCreditNote } from '../../../actions/lifecycle/credit-notes/finalize-credit-note.ts';
import { voidCreditNote } from '../../../actions/lifecycle/credit-notes/void-credit-note.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor, toPreviewContext } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  CreateCreditNote,
  CreditNoteAnswer,
  CreditNoteDone,
  CreditNoteFilter,
  CreditNoteListAnswer,
  creditNoteGrammar,
} from './schema.ts';
import { showCreditNote, showCreditNotes } from './show.ts';

const tag = 'Credit notes';

const creditNotes = standardRoutes({
  noun: 'creditnote',
  called: { path: '/creditnotes', name: 'CreditNote', words: 'credit note' },
  tag,
  answer: CreditNoteAnswer,
  model: CreditNoteModel,
  show: showCreditNote,
  list: { filter: CreditNoteFilter, answer: CreditNoteListAnswer, find: findCreditNotes },
});

export const creditNoteRoutes: Route[] = [
  creditNotes.create({
    summary: 'Create a credit note',
    description:
      'Credits lines of a final invoice. For an unpaid invoice it lowers the amount due (ADJUSTMENT); a paid amount goes to the prepaid wallet of the customer (REFUND). All credit notes together credit at most the amount of a line; its tax is credited with it. The note takes effect at once unless `process_credit_note` is false. A second note with the same `idempotency_key`, or without one with the same content, is refused with 409.',
    body: CreateCreditNote,
    handle: ({ body }, context) => createCreditNote(context.services, context.scope, body, toAuthor(context)),
  }),
  route({
    method: 'post',
    path: '/creditnotes/preview',
    operation_id: 'previewCreditNote',
    summary: 'Preview a credit note',
    description:
      'Returns the credit note as its creation would, with the invoice after it. Nothing is written, and its ids and an assigned number are empty. A request that the creation would refuse is refused.',
    tag,
    access: 'creditnote:read',
    body: CreateCreditNote,
    success: 200,
    answer: CreditNoteAnswer,
    handle: async ({ body }, context) => {
      const show = (note: CreditNoteModel, database: Database) =>
        showCreditNote(note, toPreviewContext(context, database));
      const preview = { request: body, author: toAuthor(context), show };
      const shown = await previewCreditNote(context.services, context.scope, preview);
      return { ...shown, credit_note_number: body.credit_note_number ?? '' };
    },
  }),
  creditNotes.list,
  creditNotes.read({
    summary: 'Get a credit note',
    description: 'Returns the credit note with its lines, invoice, subscription and customer.',
  }),
  route({
    method: 'post',
    path: '/creditnotes/:id/finalize',
    operation_id: 'processCreditNote',
    summary: 'Finalize a draft credit note',
    description:
      'Puts a draft into effect by the current state of its invoice, whose payment decides if the note adjusts or refunds. Refused if other notes have credited the remaining amount.',
    tag,
    access: 'creditnote:write',
    params: idParams,
    success: 200,
    answer: CreditNoteDone,
    idempotency: {
      replay: async (_done, { params }, context) => {
        const { scope, services } = context;
        const note = await CreditNoteModel.fetch(scope, params.id, { database: services.postgres });
        return showDone(note, 'final', context);
      },
    },
    handle: async ({ params }, context) => {
      const deed = { id: params.id, author: toAuthor(context) };
      const note = await finalizeCreditNote(context.services, context.scope, deed);
      return showDone(note, 'final', context);
    },
  }),
  route({
    method: 'post',
    path: '/creditnotes/:id/void',
    operation_id: 'voidCreditNote',
    summary: 'Void a credit note',
    description:
      'Voids a draft or an adjustment. The amount of an adjustment is due again, and an invoice that it had paid becomes PENDING. Refused for a final refund, and if a later change credited the part of a line that the note had left.',
    tag,
    access: 'creditnote:write',
    params: idParams,
    success: 200,
    answer: CreditNoteDone,
    idempotency: {
      replay: async (_done, { params }, context) => {
        const { scope, services } = context;
        const note = await CreditNoteModel.fetch(scope, params.id, { database: services.postgres });
        return showDone(note, 'void', context);
      },
    },
    handle: async ({ params }, context) => {
      const note = await voidCreditNote(context.services, context.scope, { id: params.id, author: toAuthor(context) });
      return showDone(note, 'void', context);
    },
  }),
];

async function findCreditNotes(input: CreditNoteFilter, context: Context) {
  const { scope, services } = context;
  const query = narrow(CreditNoteModel.in(scope, services.postgres), [
    ['id', input.credit_note_ids],
    ['invoice_id', input.invoice_id],
    ['credit_note_status', input.credit_note_status],
    ['credit_note_type', input.credit_note_type],
  ]);
  const { items, pagination } = await fetchPage(query, input, creditNoteGrammar);
  return { items: await showCreditNotes(items, input.expand ?? [], context), pagination };
}

async function showDone(note: CreditNoteModel, done: 'final' | 'void', context: Context) {
  return { ...(await showCreditNote(note, context)), message: `credit note ${note.credit_note_number} is ${done}` };
}
