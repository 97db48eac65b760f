/**
 * Finalizes a draft credit note. Its amounts are recomputed under the invoice's lock: since the draft was created the invoice may have been
 * paid, and other notes may have credited the rest of its lines.
 */

import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { type CreditNotePlan, planCreditNote } from '../../../core/invoicing/credit-note/plan.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { loadCreditableLines } from '../../invoicing/credit-notes/creditable-lines.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { takeEffect } from './take-effect.ts';

type FinalizeCreditNoteInput = { readonly id: string; readonly author: Author };

export async function finalizeCreditNote(
  stores: Stores,
  scope: Scope,
  { id, author }: FinalizeCreditNoteInput,
): Promise<CreditNoteModel> {
  const attempt = async (transaction: Transaction) => {
    const { locked, note } = await lockNote(transaction, scope, id);
    if (note.credit_note_status !== 'DRAFT')
      throw notAllowed(`a credit note that is ${note.credit_note_status} cannot be finalized`, { id });
    const lines = await CreditNoteLineItemModel.in(note, transaction)
      .where({ credit_note_id: id })
      .orderBy('position')
      .forUpdate();
    const plan = planCreditNote(locked.invoice, await loadCreditableLines(locked.invoice, transaction), lines);
    const planned = await writePlan(transaction, { note, lines, plan, author });
    return takeEffect(stores, transaction, { note: planned, lockedInvoice: locked, author });
  };
  return retryTransaction(stores, attempt);
}

/** Locks the invoice first, as the creation of a note does. */
export async function lockNote(transaction: Transaction, scope: Scope, id: string) {
  const { invoice_id } = await CreditNoteModel.fetch(scope, id, { database: transaction });
  const locked = await lockInvoice(transaction, scope, invoice_id);
  return { locked, note: await CreditNoteModel.fetch(scope, id, { database: transaction, lock: true }) };
}

async function writePlan(
  transaction: Transaction,
  {
    note,
    lines,
    plan,
    author,
  }: { note: CreditNoteModel; lines: CreditNoteLineItemModel[]; plan: CreditNotePlan } & {
    author: Author;
  },
): Promise<CreditNoteModel> {
  const by = { by: author, database: transaction };
  for (const [index, line] of lines.entries()) {
    const { tax, prepaid } = plan.lines[index]!;
    const part = { tax_amount: tax.toFixed(), prepaid_credits_returned: prepaid.toFixed() };
    await CreditNoteLineItemModel.change(line, part, by);
  }
  const changes = {
    credit_note_type: plan.credit_note_type,
    total_tax: plan.total_tax.toFixed(),
    total_amount: plan.total.toFixed(),
    total_prepaid_credits_returned: plan.total_prepaid.toFixed(),
  };
  return CreditNoteModel.change(note, changes, by);
}
