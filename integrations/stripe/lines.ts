/** Lines of an invoice at Stripe: one integer amount each, never a unit price times a quantity, which Stripe would round by its own rules. */
import type { Stripe } from 'stripe';
import type { PushedInvoiceLine } from '../../core/platform/integration/pushed-lines.ts';
import type { PushedInvoice } from '../account.ts';
import { foldSmallestLines, sumMinorUnits } from '../minor-units.ts';
import { ProviderError } from '../provider-error.ts';
import { fromMinorUnits, toMinorUnits } from './amounts.ts';

/** Maximum number of lines of one invoice; Stripe refuses more (docs.stripe.com/changelog/2016-02-22/no-more-than-250-invoice-items). */
const LINES_MAX = 250;

export type StripeLine = Stripe.InvoiceAddLinesParams.Line & { amount: number };

/** Throws if the lines do not add up to the total of the invoice. */
export function toStripeLines({ lines, total, currency }: PushedInvoice): StripeLine[] {
  if (lines.length === 0) throw new ProviderError('person', 'an invoice without lines cannot be sent to Stripe');
  const converted = lines.map((line) => toStripeLine(line, currency));
  const sum = sumMinorUnits(converted.map(({ amount }) => amount));
  if (!sum.equals(String(toMinorUnits(total, currency))))
    throw new ProviderError(
      'person',
      `the lines add up to ${fromMinorUnits(sum.toNumber(), currency)} ${currency}, the total is ${total}`,
    );
  return foldSmallestLines(converted, LINES_MAX, ({ count, amount }) => ({
    amount,
    description: `${count} further lines of smaller amounts`,
  }));
}

function toStripeLine(
  { description, amount, line_item_id, period_start, period_end }: PushedInvoiceLine,
  currency: string,
) {
  const hasPeriod = period_start !== null && period_end !== null;
  return {
    amount: toMinorUnits(amount, currency),
    description,
    ...(hasPeriod ? { period: toInclusivePeriod(period_start, period_end) } : {}),
    ...(line_item_id === null ? {} : { metadata: { farthing_line_item_id: line_item_id } }),
  };
}

/** Converts a period: at Stripe its end is inclusive. */
function toInclusivePeriod(period_start: string, period_end: string): { start: number; end: number } {
  const start = toUnixSeconds(period_start);
  return { start, end: Math.max(start, toUnixSeconds(period_end) - 1) };
}

export function toUnixSeconds(instant: string): number {
  return Math.floor(Date.parse(instant) / 1_000);
}
