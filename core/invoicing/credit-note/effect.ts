/** Changes of an invoice by a credit note, at its finalization and when it is voided (docs/rules/credit-notes.md). */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { buildStateError, notAllowed } from '../../foundation/error.ts';
import { derivePaymentStatus } from '../invoice/payment-status.ts';
import type { Invoice, PaymentStatus } from '../invoice/record.ts';
import type { CreditNote } from './record.ts';

type NoteAmounts = Pick<CreditNote, 'credit_note_type' | 'total_amount'> &
  Partial<Pick<CreditNote, 'total_prepaid_credits_returned'>>;
type InvoiceChanges = Partial<Invoice>;

export function planCreditedInvoice(invoice: Invoice, note: NoteAmounts, now: Date): InvoiceChanges {
  if (note.credit_note_type === 'ADJUSTMENT') return planAdjustedInvoice(invoice, note, now);
  const changes = {
    ...planReturnedCredits(invoice, note),
    refunded_amount: addAmounts(invoice.refunded_amount, note.total_amount),
  };
  return { ...changes, payment_status: derivePaymentStatus({ ...invoice, ...changes }) };
}

function planReturnedCredits(
  invoice: Invoice,
  { total_prepaid_credits_returned: credits = '0' }: NoteAmounts,
): InvoiceChanges {
  if (new Decimal(credits).isZero()) return {};
  return { prepaid_credits_returned: addAmounts(invoice.prepaid_credits_returned, credits) };
}

function addAmounts(one: string, other: string): string {
  return new Decimal(one).plus(other).toFixed();
}

/**
 * Plans the invoice after an adjustment. The part that prepaid credits had paid returns to their lots and does not lower the amount due.
 */
function planAdjustedInvoice(invoice: Invoice, note: NoteAmounts, now: Date): InvoiceChanges {
  const { total_amount, total_prepaid_credits_returned: credits = '0' } = note;
  const rest = new Decimal(total_amount).minus(credits);
  const back = planReturnedCredits(invoice, note);
  const amounts = {
    ...applyAdjustment(invoice, rest.plus(invoice.adjustment_amount)),
    ...back,
    ...(back.prepaid_credits_returned ? { refunded_amount: addAmounts(invoice.refunded_amount, credits) } : {}),
  };
  // A payment in progress can still succeed or fail, so it decides the payment status.
  if (!new Decimal(amounts.amount_remaining).isZero() || invoice.payment_status === 'PROCESSING') return amounts;
  return { ...amounts, payment_status: 'SUCCEEDED', paid_at: invoice.paid_at ?? now.toISOString() };
}

/** Checks that the note can be voided. A final note that credited a wallet cannot, because the amount may be spent. */
export function checkCanVoidNote({
  credit_note_status,
  credit_note_type,
  total_prepaid_credits_returned = '0',
  change_invoice_id,
}: Pick<CreditNote, 'credit_note_status' | 'credit_note_type' | 'change_invoice_id'> &
  Partial<Pick<CreditNote, 'total_prepaid_credits_returned'>>): void {
  if (change_invoice_id)
    throw buildStateError(
      'id',
      'names an adjustment that a change of the subscription made: change the subscription back',
      {
        change_invoice_id,
      },
    );
  if (credit_note_status === 'VOIDED') throw buildStateError('credit_note_status', 'the credit note is void already');
  if (credit_note_status !== 'FINALIZED') return;
  if (credit_note_type === 'REFUND')
    throw buildStateError('credit_note_type', 'a refund that is final cannot be voided: the money is in the wallet');
  if (!new Decimal(total_prepaid_credits_returned).isZero())
    throw buildStateError(
      'credit_note_type',
      'an adjustment that returned prepaid credits cannot be voided: the wallet has them',
    );
}

/** Plans the invoice after an adjustment is voided: the credited amount becomes due again. */
export function planUncreditedInvoice(invoice: Invoice, { total_amount }: NoteAmounts): InvoiceChanges {
  if (invoice.invoice_status !== 'FINALIZED')
    throw notAllowed(`the invoice is ${invoice.invoice_status}: its credit notes stay as they are`);
  if (!TO_BE_PAID.includes(invoice.payment_status))
    throw notAllowed(`the payment of the invoice is ${invoice.payment_status}: an adjustment of it cannot be voided`);
  const amounts = applyAdjustment(invoice, new Decimal(invoice.adjustment_amount).minus(total_amount));
  const over = new Decimal(invoice.amount_paid).minus(amounts.amount_due);
  if (over.gt(0)) return { ...amounts, payment_status: 'OVERPAID', overpaid_amount: over.toFixed() };
  const paid = { ...amounts, overpaid_amount: null };
  if (over.isZero()) return { ...paid, payment_status: 'SUCCEEDED' };
  if (invoice.payment_status !== 'SUCCEEDED' && invoice.payment_status !== 'OVERPAID') return paid;
  return { ...paid, payment_status: 'PENDING', paid_at: null };
}

/** Payment statuses in which an amount can become due again; a refunded amount cannot. */
const TO_BE_PAID: readonly PaymentStatus[] = ['PENDING', 'PROCESSING', 'FAILED', 'SUCCEEDED', 'OVERPAID'];

function applyAdjustment(invoice: Invoice, adjustment: Decimal) {
  const due = new Decimal(invoice.total).minus(adjustment);
  return {
    adjustment_amount: adjustment.toFixed(),
    amount_due: due.toFixed(),
    amount_remaining: Decimal.max(ZERO, due.minus(invoice.amount_paid)).toFixed(),
  };
}
