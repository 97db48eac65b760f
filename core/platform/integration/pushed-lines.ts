/**
 * Lines of an invoice for a provider (docs/integrations/README.md, "Amounts"): each line net of discounts and prepaid
 * credits, one line per added tax, and the paid and credited amounts. They add up to the remaining amount.
 */
import { Decimal, sumDecimals } from '../../foundation/decimal.ts';
import { FarthingError } from '../../foundation/error.ts';
import type { Invoice, InvoiceLineItem } from '../../invoicing/invoice/record.ts';
import { computeLineNet } from '../../rating/adjustment-fields.ts';

/** A tax with its label, such as "VAT 19%". An included tax is part of the line amounts already. */
type PushedTax = { readonly label: string; readonly amount: string; readonly is_included?: boolean };

/** One amount, in currency units as decimal text; negative for a line that credits. */
export type PushedInvoiceLine = {
  readonly description: string;
  readonly amount: string;
  /** Id of the invoice line; null for taxes and paid amounts. */
  readonly line_item_id: string | null;
  readonly period_start: string | null;
  readonly period_end: string | null;
};

/** Amounts of an invoice that change after its finalization. */
type InvoiceBalance = Pick<Invoice, 'adjustment_amount' | 'amount_paid' | 'amount_remaining'>;

/** Amounts of an invoice at its first push. */
export type SentInvoice = InvoiceBalance & {
  /** Ids of payments and credit notes that these amounts contain; they are not pushed again. */
  readonly contained_ids: readonly string[];
};

type InvoiceParts = {
  readonly invoice: Pick<Invoice, 'id'> & InvoiceBalance;
  readonly lines: readonly InvoiceLineItem[];
  readonly taxes: readonly PushedTax[];
};

/** Computes the lines. Throws if they do not add up to the remaining amount, because the provider would then show a wrong amount. */
export function computePushedLines({ invoice, lines, taxes }: InvoiceParts): PushedInvoiceLine[] {
  const pushed = [
    ...lines.map(toPushedLine),
    ...taxes.filter(({ is_included }) => !is_included).map(({ label, amount }) => toOtherLine(label, amount)),
  ].filter(({ amount }) => !new Decimal(amount).isZero());
  const sum = sumDecimals(pushed.map(({ amount }) => new Decimal(amount)));
  const settled = new Decimal(invoice.amount_paid).plus(invoice.adjustment_amount);
  const remaining = sum.minus(settled);
  if (!remaining.eq(invoice.amount_remaining))
    throw new FarthingError(
      'system_error',
      `the lines of invoice ${invoice.id} add up to ${sum.toFixed()}, and ${settled.toFixed()} is paid or credited: ${remaining.toFixed()} remains, not ${invoice.amount_remaining}`,
    );
  return settled.isZero() ? pushed : [...pushed, toOtherLine('Paid or credited already', settled.negated().toFixed())];
}

function toPushedLine(line: InvoiceLineItem): PushedInvoiceLine {
  return {
    description: line.display_name || line.plan_display_name || line.meter_display_name || 'Charge',
    amount: computeLineNet(line).toFixed(),
    line_item_id: line.id,
    period_start: line.period_start ?? null,
    period_end: line.period_end ?? null,
  };
}

function toOtherLine(description: string, amount: string): PushedInvoiceLine {
  return { description, amount, line_item_id: null, period_start: null, period_end: null };
}
