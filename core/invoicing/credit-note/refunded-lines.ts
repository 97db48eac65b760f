/**
 * Refunds of payments, spread over the lines of an invoice (docs/rules/credit-notes.md, "No more than was charged"). A
 * refund names no line. It is spread over the part of each line that prepaid credits did not pay, and over its tax; the
 * shares add up to the refund (docs/rules/numbers.md, "Spreading an amount"). No line gets more than its rest after
 * other credits; the excess goes to the other lines.
 */
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { spread } from '../../foundation/spread.ts';
import type { Invoice } from '../invoice/record.ts';
import { type CreditableLine, computePaidRemainder, computeRefundedByPayments } from './creditable.ts';

type RefundedInvoice = Pick<Invoice, 'refunded_amount' | 'currency'>;
/** Amount after discounts and without tax, the part of it that prepaid credits had paid, and the returned tax. */
export type ReturnedAmount = { readonly amount: Decimal; readonly prepaid?: Decimal; readonly tax: Decimal };

/** Spreads refunds over the lines. `by_notes`: part of `refunded_amount` that credit notes returned. */
export function computeRefundedLines(
  invoice: RefundedInvoice,
  { lines, by_notes }: { readonly lines: readonly CreditableLine[]; readonly by_notes: Decimal },
): Map<string, ReturnedAmount> {
  const charges = lines.filter(({ amount }) => amount.gt(0));
  const rooms = charges.map(computePaidRemainder).flatMap(({ amount, tax }) => [amount, tax]);
  const weights = charges.flatMap(({ amount, discount, prepaid = ZERO, tax }) => [
    amount.minus(discount).minus(prepaid),
    tax,
  ]);
  const refunded = Decimal.min(computeRefundedByPayments(invoice, by_notes), sumDecimals(rooms));
  if (refunded.isZero()) return new Map();
  const parts = spreadWithinRooms(refunded, { weights, rooms }, invoice.currency);
  return new Map(charges.map(({ id }, index) => [id, { amount: parts[2 * index]!, tax: parts[2 * index + 1]! }]));
}

type RefundRooms = { readonly weights: readonly Decimal[]; readonly rooms: readonly Decimal[] };

function spreadWithinRooms(amount: Decimal, { weights, rooms }: RefundRooms, currency: string): Decimal[] {
  const parts = spread(amount, weights, currency).map((part, index) => Decimal.min(part, rooms[index]!));
  const left = rooms.map((room, index) => room.minus(parts[index]!));
  const over = spread(amount.minus(sumDecimals(parts)), left, currency);
  return parts.map((part, index) => part.plus(over[index]!));
}
