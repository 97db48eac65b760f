/**
 * Plans the amounts and the type of a credit note (docs/rules/credit-notes.md, "Adjustment or refund", "No more than
 * was charged", "Tax"). The caller locks the invoice, so the rest of its lines does not change before the note is
 * written.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { minorUnits, roundMoney } from '../../foundation/money.ts';
import type { Invoice, PaymentStatus } from '../invoice/record.ts';
import { type CreditableLine, computeLineRemainder, computeRefundable, splitRefundable } from './creditable.ts';
import type { CreditNoteType } from './record.ts';

const TYPE_BY_PAYMENT: Partial<Record<PaymentStatus, CreditNoteType>> = {
  PENDING: 'ADJUSTMENT',
  PROCESSING: 'ADJUSTMENT',
  FAILED: 'ADJUSTMENT',
  SUCCEEDED: 'REFUND',
  OVERPAID: 'REFUND',
  PARTIALLY_REFUNDED: 'REFUND',
};

/** Payment statuses of unpaid invoices, whose credit notes are adjustments. */
export const TO_ADJUST = (Object.keys(TYPE_BY_PAYMENT) as PaymentStatus[]).filter(
  (status) => TYPE_BY_PAYMENT[status] === 'ADJUSTMENT',
);

export type CreditedInvoice = Pick<
  Invoice,
  | 'invoice_status'
  | 'payment_status'
  | 'currency'
  | 'total'
  | 'amount_paid'
  | 'adjustment_amount'
  | 'refunded_amount'
  | 'total_prepaid_credits_applied'
> &
  Partial<Pick<Invoice, 'prepaid_credits_returned'>>;

type CreditNoteLineInput = { readonly invoice_line_item_id: string; readonly amount: string };
export type CreditNotePlan = {
  readonly credit_note_type: CreditNoteType;
  /** Credited lines, in the order of the request. */
  readonly lines: readonly CreditedPart[];
  readonly subtotal: Decimal;
  readonly total_tax: Decimal;
  readonly total: Decimal;
  /** Part of the total that returns to the lots of prepaid credits. */
  readonly total_prepaid: Decimal;
};
type CreditedPart = { readonly amount: Decimal; readonly prepaid: Decimal; readonly tax: Decimal };

export function planCreditNote(
  invoice: CreditedInvoice,
  lines: readonly CreditableLine[],
  requested: readonly CreditNoteLineInput[],
): CreditNotePlan {
  const credit_note_type = deriveCreditNoteType(invoice);
  if (requested.length === 0) throw invalid('line_items', 'must name at least one line of the invoice');
  const planned = planCreditLines(lines, requested, invoice.currency);
  const subtotal = sumDecimals(planned.map(({ amount }) => amount));
  const total_tax = sumDecimals(planned.map(({ tax }) => tax));
  const total = subtotal.plus(total_tax);
  const lots = sumDecimals(planned.map(({ prepaid }) => prepaid));
  const most = computeCreditLimit(invoice, credit_note_type, lots);
  if (total.gt(most))
    throw invalid(
      'line_items',
      `come to ${total.toFixed()} with tax, but no more than ${most.toFixed()} of this invoice can be credited`,
      { max_allowed: most.toFixed() },
    );
  const total_prepaid = credit_note_type === 'REFUND' ? computeRefundPrepaid(invoice, total, lots) : lots;
  return { credit_note_type, lines: planned, subtotal, total_tax, total, total_prepaid };
}

/**
 * Computes the part of a refund that returns as prepaid credits. A refund cannot return more money than was paid, so any amount above the
 * payments was paid by prepaid credits.
 */
function computeRefundPrepaid(invoice: CreditedInvoice, total: Decimal, lots: Decimal): Decimal {
  return Decimal.max(lots, total.minus(splitRefundable(invoice).rest));
}

function deriveCreditNoteType({ invoice_status, payment_status }: CreditedInvoice): CreditNoteType {
  if (invoice_status !== 'FINALIZED')
    throw invalid('invoice_id', `names an invoice that is ${invoice_status}: only a final one can be credited`);
  const type = TYPE_BY_PAYMENT[payment_status];
  if (type === undefined)
    throw invalid('invoice_id', `names an invoice whose payment is ${payment_status}: it cannot be credited`, {
      allowed: Object.keys(TYPE_BY_PAYMENT),
    });
  return type;
}

/**
 * An adjustment credits at most the unpaid rest of the total, and the prepaid credits that return to their lots. A
 * refund credits at most the payments and prepaid credits that were not returned yet.
 */
function computeCreditLimit(invoice: CreditedInvoice, type: CreditNoteType, lots: Decimal): Decimal {
  if (type === 'REFUND') return computeRefundable(invoice);
  const { total, adjustment_amount, amount_paid } = invoice;
  return Decimal.max(ZERO, new Decimal(total).minus(adjustment_amount).minus(amount_paid)).plus(lots);
}

/** Plans the lines one after the other, because a line that is named twice has a smaller rest the second time. */
function planCreditLines(
  lines: readonly CreditableLine[],
  requested: readonly CreditNoteLineInput[],
  currency: string,
) {
  const left = new Map(lines.map((line) => [line.id, toCreditableRemainder(line)]));
  return requested.map((one, index) => {
    const at = `line_items[${index}]`;
    const rest = left.get(one.invoice_line_item_id);
    if (rest === undefined) throw invalid(`${at}.invoice_line_item_id`, 'is no line of this invoice');
    const amount = parseCreditAmount(one.amount, { field: `${at}.amount`, currency, most: rest.amount });
    const part = {
      amount,
      prepaid: computeCreditedPrepaid(amount, rest, currency),
      tax: computeCreditedTax(amount, rest, currency),
    };
    left.set(one.invoice_line_item_id, {
      ...rest,
      amount: rest.amount.minus(amount),
      prepaid: rest.prepaid.minus(part.prepaid),
      tax: rest.tax.minus(part.tax),
    });
    return part;
  });
}

/** `charged`, `charged_prepaid` and `charged_tax` are amounts of the whole line. */
type CreditableRemainder = CreditedPart & {
  readonly charged: Decimal;
  readonly charged_prepaid: Decimal;
  readonly charged_tax: Decimal;
};

function toCreditableRemainder(line: CreditableLine): CreditableRemainder {
  const { amount, discount, tax, prepaid = ZERO } = line;
  return { charged: amount.minus(discount), charged_prepaid: prepaid, charged_tax: tax, ...computeLineRemainder(line) };
}

function parseCreditAmount(
  text: string,
  { field, currency, most }: { field: string; currency: string; most: Decimal },
) {
  const amount = new Decimal(text);
  if (amount.lte(0)) throw invalid(field, 'must be more than 0');
  if (amount.decimalPlaces() > minorUnits(currency)) throw invalid(field, `has more decimals than ${currency}`);
  if (amount.gt(most))
    throw invalid(field, `is more than is left of the line, ${most.toFixed()}`, { max_allowed: most.toFixed() });
  return amount;
}

/**
 * Computes the credited share of the line's tax, at most its remaining tax. If the whole remaining amount of the line is credited, all its
 * remaining tax is credited too.
 */
function computeCreditedTax(amount: Decimal, left: CreditableRemainder, currency: string): Decimal {
  if (amount.eq(left.amount)) return left.tax;
  return Decimal.min(left.tax, roundMoney(left.charged_tax.times(amount).dividedBy(left.charged), currency));
}

/**
 * Part of the credited amount that prepaid credits paid: a proportional share, at most the prepaid part of the line that is not
 * credited yet. It is more if refunds returned so much that the rest paid in money does not cover the other share.
 */
function computeCreditedPrepaid(amount: Decimal, left: CreditableRemainder, currency: string): Decimal {
  if (left.prepaid.isZero()) return ZERO;
  const share = roundMoney(left.charged_prepaid.times(amount).dividedBy(left.charged), currency);
  const beyond_paid = amount.minus(left.amount.minus(left.prepaid));
  return Decimal.min(left.prepaid, Decimal.max(share, beyond_paid));
}
