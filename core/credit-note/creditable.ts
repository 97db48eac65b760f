/**
 * What of an invoice may still be given back (docs/rules/credit-notes.md, "No more than was charged"): the one rule of credit notes, refunds
 * of payments and voids. Whoever asks holds the invoice, so that it stays so until what is given back is written.
 */
import { Decimal, sumDecimals, ZERO } from '../decimal.ts';
import type { Invoice } from '../invoice/record.ts';

type InvoicePaymentSums = Pick<Invoice, 'amount_paid' | 'total_prepaid_credits_applied'>;
/** Prepaid credits that have returned to their lots; none if absent. */
type ReturnedPrepaidCredits = Partial<Pick<Invoice, 'prepaid_credits_returned'>>;
type RefundedSum = Pick<Invoice, 'refunded_amount'>;

/** A line of the invoice: what it charged, and what was given back of it so far, in whichever way. */
export type CreditableLine = {
  readonly id: string;
  readonly amount: Decimal;
  readonly discount: Decimal;
  readonly tax: Decimal;
  /** Part of it that prepaid credits paid; none if absent. */
  readonly prepaid?: Decimal;
  readonly credited: Decimal;
  readonly tax_credited: Decimal;
  /** Part of `credited` that prepaid credits had paid. */
  readonly prepaid_credited?: Decimal;
};

/** An invoice was given its payments and credits of prepaid wallets. An invoice that returned more credits than it used took none. */
export function computePaidTotal({ amount_paid, total_prepaid_credits_applied }: InvoicePaymentSums): Decimal {
  return new Decimal(amount_paid).plus(Decimal.max(ZERO, total_prepaid_credits_applied));
}

/** Of what was given: to a wallet, by a credit note or a void. */
export function computeRefundable(invoice: InvoicePaymentSums & RefundedSum): Decimal {
  return Decimal.max(ZERO, computePaidTotal(invoice).minus(invoice.refunded_amount));
}

/** The same, in the two ways in which it goes back: prepaid credits to their lots, the rest with its tax. */
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

/** Answers the rest of a line after its discounts, the part of it that prepaid credits paid, and the rest of its tax. */
export function computeLineRemainder(line: Omit<CreditableLine, 'id'>) {
  const { amount, discount, tax, credited, tax_credited, prepaid = ZERO, prepaid_credited = ZERO } = line;
  const left = Decimal.max(ZERO, amount.minus(discount).minus(credited));
  return {
    amount: left,
    prepaid: Decimal.min(left, Decimal.max(ZERO, prepaid.minus(prepaid_credited))),
    tax: Decimal.max(ZERO, tax.minus(tax_credited)),
  };
}

/** Money, or credits that include tax, paid this rest of a line: its net and its tax. */
export function computePaidRemainder(line: Omit<CreditableLine, 'id'>): { amount: Decimal; tax: Decimal } {
  const { amount, prepaid, tax } = computeLineRemainder(line);
  return { amount: amount.minus(prepaid), tax };
}

type PaidSums = RefundedSum & Pick<Invoice, 'amount_paid' | 'amount_due'>;

/** Of its charges and what was paid too much, by refunds of payments; `by_notes` is what of `refunded_amount` credit notes gave. */
export function computeRefundableCharges(
  invoice: PaidSums,
  { lines, by_notes }: { lines: readonly Omit<CreditableLine, 'id'>[]; by_notes: Decimal },
): Decimal {
  const over = new Decimal(invoice.amount_paid).minus(invoice.amount_due);
  // Of a part: it is owed again.
  if (over.isNegative()) return new Decimal(invoice.amount_paid);
  const left = lines.map(computePaidRemainder).flatMap(({ amount, tax }) => [amount, tax]);
  return sumDecimals(left).plus(over).minus(computeRefundedByPayments(invoice, by_notes));
}

/**
 * A payment is refunded up to this amount, by the provider that took it or by hand. Credits that returned to prepaid lots were no money.
 */
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

/** Of what was charged: not what credit notes gave back, nor what had been paid too much, or in part, which lowers what was paid. */
export function computeRefundedByPayments({ refunded_amount }: RefundedSum, by_notes: Decimal): Decimal {
  return Decimal.max(ZERO, new Decimal(refunded_amount).minus(by_notes));
}
