/**
 * Effects of voiding an invoice on subscription changes (docs/rules/invoices.md, "Voiding"). A change that credited only charges of this
 * invoice, and lowered only this invoice, is voided with it. If credits of other charges had lowered this invoice, they are returned: they
 * lower the open debt of the subscription, and the remainder goes to the wallet.
 */

import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { sumCreditOn } from '../../../core/invoicing/credit-note/offsets.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { emit } from '../../foundation/emit.ts';
import { gatherCredited, giveCredit } from '../credit-notes/give-credit.ts';
import { loadInvoiceLines } from '../records/invoice-records.ts';
import { computeInvoiceNet } from './credit-rest.ts';
import { listLineCredits } from './credits-of-lines.ts';

/**
 * Gathers the changes that are voided with the invoice. Throws if a change has credited one of the lines `ids` and that credit lowered
 * another invoice or is in a wallet.
 */
export async function gatherChangesWithin(
  transaction: Transaction,
  invoice: InvoiceModel,
  ids: readonly string[],
): Promise<InvoiceModel[]> {
  const credits = await listLineCredits(invoice, ids, transaction);
  const changeIds = credits.map(({ invoice_id }) => invoice_id);
  const changes = [...(await InvoiceModel.byId(invoice, changeIds, transaction)).values()];
  for (const change of changes)
    if (!(await isWithin(transaction, change, { invoice, ids })))
      throw notAllowed('unused time of this invoice was credited already: it cannot be voided', {
        invoice_id: change.id,
      });
  return changes;
}

/** Whether this invoice charged everything that the change credits, and the negative amount of the change lowered only this invoice. */
async function isWithin(
  transaction: Transaction,
  change: InvoiceModel,
  { invoice, ids }: { readonly invoice: InvoiceModel; readonly ids: readonly string[] },
): Promise<boolean> {
  if (change.invoice_status !== 'SKIPPED') return false;
  const lines = await loadInvoiceLines(change, transaction);
  const giving = lines.filter(({ amount }) => new Decimal(amount).isNegative());
  if (giving.some(({ parent_line_item_id }) => !ids.includes(parent_line_item_id ?? ''))) return false;
  const lineIds = lines.map(({ id }) => id);
  if ((await listLineCredits(change, lineIds, transaction)).length > 0) return false;
  const notes = await offsetNotes(transaction, { change_invoice_id: change.id, invoice_id: invoice.id }, invoice);
  const lowered = sumDecimals(notes.map(({ total_amount }) => new Decimal(total_amount)));
  return lowered.eq(computeInvoiceNet(change).negated());
}

function offsetNotes(
  transaction: Transaction,
  where: Partial<Pick<CreditNoteModel, 'change_invoice_id' | 'invoice_id'>>,
  invoice: InvoiceModel,
): Promise<CreditNoteModel[]> {
  return CreditNoteModel.in(invoice, transaction)
    .where({ ...where, credit_note_status: 'FINALIZED', status: 'published' })
    .whereNotNull('change_invoice_id')
    .orderBy(['created_at', 'id']) as unknown as Promise<CreditNoteModel[]>;
}

export async function voidChangesWithin(
  transaction: Transaction,
  changes: readonly InvoiceModel[],
  author: Author,
): Promise<void> {
  for (const change of changes) {
    const voided = { invoice_status: 'VOIDED' as const, voided_at: author.now.toISOString() };
    const record = await InvoiceModel.change(change, voided, { by: author, database: transaction });
    await emit(transaction, 'invoice.update.voided', { record, by: author });
  }
}

type ReturnOffsetsInput = {
  readonly invoice: InvoiceModel;
  readonly subscription: SubscriptionModel;
  /** Ids of the changes that are voided with the invoice. */
  readonly changes: readonly string[];
  readonly author: Author;
};

/**
 * Credits again the amounts that credits had paid of the void invoice. Returns the open invoices that they lower now. `transaction` has
 * locked the subscription.
 */
export async function returnOffsets(
  transaction: Transaction,
  { invoice, changes, ...returning }: ReturnOffsetsInput,
): Promise<readonly InvoiceModel[]> {
  let amount = ZERO;
  for (const note of await offsetNotes(transaction, { invoice_id: invoice.id }, invoice)) {
    const change = await InvoiceModel.fetch(invoice, note.change_invoice_id!, { database: transaction });
    if (changes.includes(change.id)) continue;
    const credited = await gatherCredited(transaction, change, await loadInvoiceLines(change, transaction));
    // The void invoice charged the amount that was credited, and the credit lowered this same invoice. Billing the period again would
    // charge the credited amount again.
    if (sumCreditOn(invoice.id, credited).gt(0))
      throw notAllowed(
        'a later invoice gave back a part of what this one charged, and lowered it: it cannot be voided',
        {
          invoice_id: change.id,
        },
      );
    amount = amount.plus(note.total_amount);
  }
  if (amount.isZero()) return [];
  const description = `Invoice ${invoice.invoice_number ?? invoice.id} is void`;
  const leftOver = { ...returning, invoice, lines: [], amount, key: 'offset', reason: 'BILLING_ERROR' } as const;
  return (await giveCredit(transaction, { ...leftOver, description })).lowered;
}
