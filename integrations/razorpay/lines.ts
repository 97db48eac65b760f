/** Lines of an invoice at Razorpay: one positive integer amount each, with quantity 1. */

import type { PushedInvoice } from '../account.ts';
import { foldSmallestLines, sumMinorUnits } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';
import { cutCharacters } from '../pushed-records.ts';
import { fromSubunits, toPayableSubunits, toSubunits } from './amounts.ts';

/** Maximum number of lines of one invoice; Razorpay refuses more (razorpay.com/docs/api/payments/invoices). */
const LINES_MAX = 50;
const NAME_MAX = 255;
const DESCRIPTION_MAX = 2_048;

type RazorpayLine = {
  readonly name: string;
  readonly description?: string;
  readonly amount: number;
  readonly currency: string;
  readonly quantity: 1;
};

/** Throws if the lines do not add up to the total of the invoice. */
export function toRazorpayLines(invoice: PushedInvoice): RazorpayLine[] {
  const { lines, total, currency } = invoice;
  if (lines.length === 0) throw new ProviderError('person', 'an invoice without lines cannot be sent to Razorpay');
  const amounts = lines.map(({ amount }) => toSubunits(amount, currency));
  const sum = sumMinorUnits(amounts);
  const integer = toPayableSubunits(total, currency);
  if (!sum.equals(String(integer)))
    throw new ProviderError(
      'person',
      `the lines add up to ${fromSubunits(sum.toNumber(), currency)} ${currency}, the total is ${total}`,
    );
  if (amounts.some((amount) => amount < 0)) return [toTotalLine(invoice, integer)];
  const built = lines.map(({ description }, index) => buildLine(description, amounts[index]!, currency));
  return foldSmallestLines(built, LINES_MAX, ({ count, amount }) =>
    buildLine(`${count} further lines of smaller amounts`, amount, currency),
  );
}

function buildLine(name: string, amount: number, currency: string): RazorpayLine {
  return { name: cutCharacters(name, NAME_MAX), amount, currency: currency.toUpperCase(), quantity: 1 };
}

/**
 * Joins all lines into one whose description lists them. Razorpay has no negative lines, so credits and payments would
 * be lost.
 */
function toTotalLine({ lines, invoice_number, currency }: PushedInvoice, total: number): RazorpayLine {
  const listed = lines.map(({ description, amount }) => `${description}: ${amount}`).join('\n');
  return {
    ...buildLine(`Invoice ${invoice_number}`, total, currency),
    description: cutCharacters(listed, DESCRIPTION_MAX),
  };
}
