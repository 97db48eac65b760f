/** Builds the answers of credit notes with their lines and expanded records. Each kind of record takes one query. */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { loadCustomersById } from '../../catalog/customers/expand.ts';
import type { Context } from '../../http/route.ts';
import { showInvoicesById, showSubscriptionsById } from '../invoices/expand.ts';

const EVERY_PART = ['invoice', 'subscription', 'customer'];

export async function showCreditNote(note: CreditNoteModel, context: Context) {
  const [shown] = await showCreditNotes([note], EVERY_PART, context);
  return shown!;
}

export async function showCreditNotes(notes: readonly CreditNoteModel[], expand: readonly string[], context: Context) {
  const { scope, services } = context;
  const lines = await CreditNoteLineItemModel.in(scope, services.postgres)
    .whereIn(
      'credit_note_id',
      notes.map(({ id }) => id),
    )
    .orderBy('position');
  const byNote = groupBy(lines, ({ credit_note_id }) => credit_note_id);
  const invoices = expand.includes('invoice') ? await showCreditedInvoices(notes, context) : new Map();
  const customers = expand.includes('customer') ? await loadCustomersById(notes, context) : new Map();
  const subscriptions = expand.includes('subscription') ? await showSubscriptionsById(notes, [], context) : new Map();
  return notes.map((note) => ({
    ...note,
    line_items: byNote.get(note.id) ?? [],
    invoice: invoices.get(note.invoice_id) ?? null,
    customer: customers.get(note.customer_id) ?? null,
    subscription: subscriptions.get(note.subscription_id ?? '') ?? null,
  }));
}

async function showCreditedInvoices(notes: readonly CreditNoteModel[], context: Context) {
  const { scope, services } = context;
  const ids = notes.map(({ invoice_id }) => invoice_id);
  return showInvoicesById(await InvoiceModel.byId(scope, ids, services.postgres), context);
}
