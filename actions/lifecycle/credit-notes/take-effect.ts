/**
 * Finalizes a credit note. Amounts paid with prepaid credits return to their lots. The remainder of an adjustment lowers the invoice's
 * amount due. The remainder of a refund goes to a prepaid wallet of the invoiced customer, never to a postpaid one
 * (docs/rules/credit-notes.md, "Adjustment or refund", "As the line was paid").
 */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { planCreditedInvoice } from '../../../core/invoicing/credit-note/effect.ts';
import { formatDraftNumber } from '../../../core/invoicing/credit-note/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { checkNotForCredits } from '../../credits/wallets/pending-credits.ts';
import { returnCredits } from '../../credits/wallets/return-credits.ts';
import { emit } from '../../foundation/emit.ts';
import { changeInvoice } from '../../invoicing/credit-notes/change-invoice.ts';
import { takeCreditNoteNumber } from '../../invoicing/credit-notes/note-number.ts';
import type { LockedInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { applyLowerRemaining } from '../effects.ts';

type CreditNoteEffect = {
  readonly note: CreditNoteModel;
  readonly lockedInvoice: LockedInvoice;
  readonly author: Author;
};

/** Applies the credit note. `transaction` has locked the invoice since the amounts of the note were checked. */
export async function takeEffect(
  stores: Stores,
  transaction: Transaction,
  { note, lockedInvoice, author }: CreditNoteEffect,
): Promise<CreditNoteModel> {
  const by = { by: author, database: transaction };
  const isRefund = note.credit_note_type === 'REFUND';
  await checkNotForCredits(transaction, lockedInvoice.invoice);
  await creditPaidPart(transaction, { note, lockedInvoice, author });
  const changes: Partial<CreditNoteModel> = {
    credit_note_status: 'FINALIZED',
    finalized_at: author.now.toISOString(),
    refund_status: isRefund ? 'SUCCEEDED' : null,
  };
  // The number is taken after the wallets are locked (subscriptions/lock-in-order.ts).
  if (note.credit_note_number === formatDraftNumber(note.id))
    changes.credit_note_number = await takeCreditNoteNumber(transaction, note, author.now);
  const final = await CreditNoteModel.change(note, changes, by);
  await emit(transaction, 'credit_note.updated', { record: final, by: author });
  const invoice = await changeInvoice(transaction, lockedInvoice.invoice, {
    changes: planCreditedInvoice(lockedInvoice.invoice, note, author.now),
    author,
  });
  await applyLowerRemaining(stores, transaction, { ...lockedInvoice, invoice, by: author });
  return final;
}

async function creditPaidPart(
  transaction: Transaction,
  { note, lockedInvoice, author }: CreditNoteEffect,
): Promise<void> {
  const { id, invoice_id, total_amount, total_prepaid_credits_returned } = note;
  const prepaid = new Decimal(total_prepaid_credits_returned);
  const rest = note.credit_note_type === 'REFUND' ? new Decimal(total_amount).minus(prepaid) : ZERO;
  await returnCredits(transaction, lockedInvoice.invoice, {
    prepaid,
    rest,
    transaction_reason: 'CREDIT_NOTE',
    reference_type: 'INVOICE',
    reference_id: invoice_id,
    idempotency_key: toOwnKey('credit_note', id),
    description: `Credit note ${id}`,
    metadata: { credit_note_id: id },
    author,
  });
}
