/**
 * Amount of an invoice that can still be credited (docs/rules/credit-notes.md, "No more than was charged"). Credit
 * notes, refunds of payments and voids use this one rule. The caller locks the invoice, so the amount does not change
 * before the credit is written.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import type { Invoice } from '../invoice/record.ts';

type InvoicePaymentSums = Pick<Invoice, 'amount_paid' | 'total_prepaid_credits_applied'>;
/** Prepaid credits that have returned to their lots; none if absent. */
type ReturnedPrepaidCredits = Partial<Pick<Invoice, 'prepaid_credits_returned'>>;
type RefundedSum = Pick<Invoice, 'refunded_amount'>;

/** A line of the invoice: its charge, and all its credits so far. */
export type CreditableLine = {
  readonly id: string;
  readonly amount: Decimal;
  readonly discount: Decimal;
  readonly tax: Decimal;
  /** Part that prepaid credits paid; none if absent. */
  readonly prepaid?: Decimal;
  readonly credited: Decimal;
  readonly tax_credited: Decimal;
  /** Part of `credited` that prepaid credits had paid. */
  readonly prepaid_credited?: Decimal;
};

/**
 * Payments and prepaid credits that the invoice received. If the invoice returned more prepaid credits than it used, the received credits
 * are 0.
 */
export function computePaidTotal({ amount_paid, total_prepaid_credits_applied }: InvoicePaymentSums): Decimal {
  return new Decimal(amount_paid).plus(Decimal.max(ZERO, total_prepaid_credits_applied));
}

/** Amount that a credit note or a void can return to a wallet. */
export function computeRefundable(invoice: InvoicePaymentSums & RefundedSum): Decimal {
  return Decimal.max(ZERO, computePaidTotal(invoice).minus(invoice.refunded_amount));
}

/** Splits the refundable amount into prepaid credits, which return to their lots, and the rest, with its tax. */
export function splitRefundable(invoice: InvoicePaymentSums & RefundedSum & ReturnedPrepaidCredits): {
  prepaid: Decimal;
  rest: Decimal;
} {
  const left = computeRefundable(invoice);
  const { total_prepaid_credits_applied, prepaid_credits_returned = '0' } = invoice;
  const unreturned = new Decimal(total_prepaid_credits_applied).minus(prepaid_credits_returned);
  const prepaid = Decimal.min(left, Decimal.max(ZERO, unreturned));
  return { prepaid, rest: left.minus(prepaid) };
}

/** Rest of a line after discounts and credits, the part of it that prepaid credits paid, and the rest of its tax. */
export function computeLineRemainder(line: Omit<CreditableLine, 'id'>) {
  const { amount, discount, tax, credited, tax_credited, prepaid = ZERO, prepaid_credited = ZERO } = line;
  const left = Decimal.max(ZERO, amount.minus(discount).minus(credited));
  return {
    amount: left,
    prepaid: Decimal.min(left, Decimal.max(ZERO, prepaid.minus(prepaid_credited))),
    tax: Decimal.max(ZERO, tax.minus(tax_credited)),
  };
}

/** Computes the rest of a line without the part that prepaid credits paid: its amount and its tax. */
export function computePaidRemainder(line: Omit<CreditableLine, 'id'>): { amount: Decimal; tax: Decimal } {
  const { amount, prepaid, tax } = computeLineRemainder(line);
  return { amount: amount.minus(prepaid), tax };
}

type PaidSums = RefundedSum & Pick<Invoice, 'amount_paid' | 'amount_due'>;

/**
 * Amount that refunds of payments can return: charges and overpayment. `by_notes`: part of `refunded_amount` that
 * credit notes returned.
 */
function computeRefundableCharges(
  invoice: PaidSums,
  { lines, by_notes }: { lines: readonly Omit<CreditableLine, 'id'>[]; by_notes: Decimal },
): Decimal {
  const over = new Decimal(invoice.amount_paid).minus(invoice.amount_due);
  // If the invoice is partly paid, all payments can be refunded: the refunded amount becomes due again.
  if (over.isNegative()) return new Decimal(invoice.amount_paid);
  const left = lines.map(computePaidRemainder).flatMap(({ amount, tax }) => [amount, tax]);
  return sumDecimals(left).plus(over).minus(computeRefundedByPayments(invoice, by_notes));
}

/** Largest refund of a payment, by its provider or by hand. Credits that returned to prepaid lots are not money. */
export function computeRefundablePayment(
  payment: { readonly amount: string; readonly refunded_amount: string },
  invoice: PaidSums & InvoicePaymentSums & ReturnedPrepaidCredits,
  charges: Parameters<typeof computeRefundableCharges>[1],
): Decimal {
  const of_credits = invoice.prepaid_credits_returned ?? '0';
  return Decimal.min(
    new Decimal(payment.amount).minus(payment.refunded_amount),
    new Decimal(invoice.amount_paid).plus(of_credits).minus(invoice.refunded_amount),
    computeRefundableCharges(invoice, charges),
  );
}

/**
 * Computes the amount of charges that refunds of payments returned. Credit notes are not included, nor are refunds of an overpaid or
 * partial payment, which lower `amount_paid` instead.
 */
export function computeRefundedByPayments({ refunded_amount }: RefundedSum, by_notes: Decimal): Decimal {
  return Decimal.max(ZERO, new Decimal(refunded_amount).minus(by_notes));
}
