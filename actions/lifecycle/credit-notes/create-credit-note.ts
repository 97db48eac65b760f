/**
 * Creates a credit note of a final invoice: it takes effect at once, or is a draft (docs/rules/credit-notes.md). A unique index decides
 * between two equal requests.
 */
import { createHash } from 'node:crypto';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { planCreditNote } from '../../../core/invoicing/credit-note/plan.ts';
import { type CreateCreditNote, formatDraftNumber } from '../../../core/invoicing/credit-note/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { checkNotForCredits } from '../../credits/wallets/pending-credits.ts';
import { emit } from '../../foundation/emit.ts';
import { type ChangePreview, previewChange } from '../../foundation/preview.ts';
import { loadCreditableLines } from '../../invoicing/credit-notes/creditable-lines.ts';
import { lockCreditNoteNumbers } from '../../invoicing/credit-notes/note-number.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { takeEffect } from './take-effect.ts';

export async function createCreditNote(
  stores: Stores,
  scope: Scope,
  request: CreateCreditNote,
  author: Author,
): Promise<CreditNoteModel> {
  return retryTransaction(stores, planCreatingNote(stores, scope, request, author));
}

/** Previews the credit note, and the invoice after it if it would take effect. */
export async function previewCreditNote<Answer>(
  stores: Stores,
  scope: Scope,
  { request, author, show }: ChangePreview<CreateCreditNote, CreditNoteModel, Answer>,
): Promise<Answer> {
  return previewChange(stores, { change: planCreatingNote(stores, scope, request, author), show });
}

/** Returns the transaction that creates the credit note. */
function planCreatingNote(stores: Stores, scope: Scope, request: CreateCreditNote, author: Author) {
  return async (transaction: Transaction): Promise<CreditNoteModel> => {
    const locked = await lockInvoice(transaction, scope, request.invoice_id);
    const creditable = await loadCreditableLines(locked.invoice, transaction);
    const plan = planCreditNote(locked.invoice, creditable, request.line_items ?? []);
    await checkNotForCredits(transaction, locked.invoice);
    const { id: invoice_id, customer_id, subscription_id, currency } = locked.invoice;
    const id = newId('credit_note', author.now.getTime());
    if (request.credit_note_number) {
      if (request.process_credit_note) await WalletModel.lockPrepaidWallet(scope, locked.invoice, transaction);
      await lockCreditNoteNumbers(transaction, scope, author.now);
    }
    const record = {
      ...createdBy(author),
      id,
      credit_note_number: request.credit_note_number ?? formatDraftNumber(id),
      invoice_id,
      customer_id,
      subscription_id,
      credit_note_status: 'DRAFT',
      credit_note_type: plan.credit_note_type,
      reason: request.reason,
      memo: request.memo ?? '',
      currency,
      subtotal: plan.subtotal.toFixed(),
      total_tax: plan.total_tax.toFixed(),
      total_amount: plan.total.toFixed(),
      total_prepaid_credits_returned: plan.total_prepaid.toFixed(),
      idempotency_key: request.idempotency_key ?? deriveContentKey(request),
      metadata: request.metadata,
    };
    const note = await CreditNoteModel.add(scope, record, { database: transaction, conflict: CONFLICT });
    const names = new Map(creditable.map((line) => [line.id, line.record.display_name]));
    await addLines(transaction, { note, request, plan, names, author });
    await emit(transaction, 'credit_note.created', { record: note, by: author });
    if (!request.process_credit_note) return note;
    return takeEffect(stores, transaction, { note, lockedInvoice: locked, author });
  };
}

const CONFLICT =
  'a credit note with this number, this idempotency_key, or without one with this content, exists already: state others for a second one';

type CreditNoteWriting = {
  note: CreditNoteModel;
  request: CreateCreditNote;
  plan: ReturnType<typeof planCreditNote>;
  names: ReadonlyMap<string, string | null | undefined>;
  author: Author;
};

async function addLines(
  transaction: Transaction,
  { note, request, plan, names, author }: CreditNoteWriting,
): Promise<void> {
  const records = (request.line_items ?? []).map((line, position) => ({
    ...createdBy(author),
    id: newId('credit_note_line_item', author.now.getTime()),
    credit_note_id: note.id,
    invoice_line_item_id: line.invoice_line_item_id,
    display_name: line.display_name ?? names.get(line.invoice_line_item_id) ?? '',
    amount: plan.lines[position]!.amount.toFixed(),
    tax_amount: plan.lines[position]!.tax.toFixed(),
    prepaid_credits_returned: plan.lines[position]!.prepaid.toFixed(),
    currency: note.currency,
    metadata: line.metadata,
    position,
  }));
  await CreditNoteLineItemModel.addAll(note, records, { database: transaction });
}

/** Derives a key from the content. Equal content is one note; a client that wants two notes uses different keys. */
function deriveContentKey({ invoice_id, reason, memo, line_items }: CreateCreditNote): string {
  const lines = (line_items ?? []).map(({ invoice_line_item_id, amount }) => `${invoice_line_item_id} ${amount}`);
  const content = JSON.stringify([invoice_id, reason, memo, lines.toSorted((one, other) => (one < other ? -1 : 1))]);
  return `content/${createHash('sha256').update(content).digest('hex').slice(0, 32)}`;
}
