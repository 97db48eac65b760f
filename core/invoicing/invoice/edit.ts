/**
 * Manual edits of an invoice that is not final (docs/rules/invoices.md, "Edits"). A changed line still charges its
 * original service period and has the computed values in `computed_from.edited`.
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { decimalText, description, orNull, timestampText } from '../../foundation/record.ts';
import { toInstant } from '../../foundation/time/instant.ts';
import { toComputedCharge } from '../../rating/computed-from.ts';
import { invoiceDiscountFields } from './discount-fields.ts';
import { checkLineInput } from './one-off.ts';
import { type CreateInvoiceLine, createInvoiceLineShape, type Invoice, type InvoiceLineItem } from './record.ts';

const { invoice_coupons, line_item_coupons, prepared_tax_rates } = invoiceDiscountFields;

export const editInvoiceShape = z.object({
  line_items: orNull(z.array(createInvoiceLineShape)).meta({
    description:
      'All lines of the edited invoice. A line with the `subscription_line_item_id` and the period of an existing line replaces it. A computed line that is left out stays with an amount of 0.',
  }),
  subtotal: orNull(decimalText).meta({ description: 'Sum of the lines; any other value is refused.' }),
  total: orNull(decimalText).meta({ description: 'Equal to `subtotal`; any other value is refused.' }),
  amount_due: orNull(decimalText).meta({ description: 'Equal to `subtotal`; any other value is refused.' }),
  description,
  due_date: orNull(timestampText).meta({ description: 'Due date; an instant in the past is refused.' }),
  invoice_coupons: invoice_coupons.meta({
    description: 'Coupons that discount the invoice. They replace those of earlier requests.',
  }),
  line_item_coupons: line_item_coupons.meta({
    description: 'Coupons that discount a line. They replace those of earlier requests.',
  }),
  prepared_tax_rates: prepared_tax_rates.meta({
    description: 'Tax rates in the shape of a response, which replace the regular ones; only the `id` is read.',
  }),
});
export type EditInvoice = z.output<typeof editInvoiceShape>;

/** Whether the edit replaces charges, so that the invoice is no longer computed. */
export function hasLineChanges({ line_items, invoice_coupons: ofInvoice, line_item_coupons: ofLines }: EditInvoice) {
  return line_items !== null || ofInvoice !== null || ofLines !== null;
}

export type EditedLine =
  | { readonly kind: 'unchanged'; readonly before: InvoiceLineItem }
  | { readonly kind: 'changed'; readonly before: InvoiceLineItem; readonly fields: ChangedFields }
  | { readonly kind: 'new'; readonly requested: CreateInvoiceLine };
type ChangedFields = Pick<
  InvoiceLineItem,
  'amount' | 'quantity' | 'display_name' | 'metadata' | 'price_unit_amount' | 'computed_from'
>;

type EditedInvoice = {
  readonly currency: string;
  readonly invoice_type: Invoice['invoice_type'];
  readonly line_items: readonly InvoiceLineItem[];
};

/**
 * Lines in the order of the request. Computed charges that the request omits follow with an amount of 0, so that no other invoice charges
 * them again. Omitted credits follow unchanged.
 */
export function planEditedLines(requested: readonly CreateInvoiceLine[], invoice: EditedInvoice): EditedLine[] {
  const computed = invoice.line_items.filter(({ computed_from }) => computed_from);
  const left = new Set(computed);
  const named = requested.map((line, index): EditedLine => {
    const at = `line_items[${index}]`;
    const before = [...left].find((one) => isSameCharge(line, one));
    const mayBeNegative = invoice.invoice_type === 'CREDIT' || (before !== undefined && isCreditLine(before));
    checkLineInput(line, { currency: invoice.currency, at, mayBeNegative });
    if (before === undefined) {
      if (computed.length > 0 && line.subscription_line_item_id)
        throw invalid(`${at}.subscription_line_item_id`, 'names no line of this invoice with that time');
      return { kind: 'new', requested: line };
    }
    left.delete(before);
    return replaceLine(before, line, at);
  });
  return [...named, ...Array.from(left, clearCharge)];
}

/** Whether a requested line charges the same item and period as an existing line. A date that the request omits matches any date. */
function isSameCharge(requested: CreateInvoiceLine, line: InvoiceLineItem): boolean {
  const isSame = line.subscription_line_item_id
    ? requested.subscription_line_item_id === line.subscription_line_item_id
    : requested.entity_type === 'subscription' && requested.entity_id === line.entity_id;
  return (
    isSame && (['period_start', 'period_end'] as const).every((edge) => isSameInstant(requested[edge], line[edge]))
  );
}

function isSameInstant(requested: string | null, instant: string | null | undefined): boolean {
  return requested === null || (Boolean(instant) && toInstant(requested) === toInstant(instant!));
}

/**
 * Whether the line credits an earlier charge or carries a credit forward. Its amount cannot be edited, because the credited charge is on
 * another invoice, or because the unused rest of the credit lowers later invoices.
 */
function isCreditLine({ amount, computed_from }: InvoiceLineItem): boolean {
  return new Decimal(amount).isNegative() || Boolean(computed_from?.carried_amount);
}

function replaceLine(before: InvoiceLineItem, requested: CreateInvoiceLine, at: string): EditedLine {
  if (!isCreditLine(before)) return planLineEdit(before, requested);
  if (!new Decimal(requested.amount).eq(before.amount))
    throw invalid(`${at}.amount`, `must be ${before.amount}: what a line gives back was charged by another`);
  return { kind: 'unchanged', before };
}

function clearCharge(before: InvoiceLineItem): EditedLine {
  if (isCreditLine(before)) return { kind: 'unchanged', before };
  return planLineEdit(before, {
    amount: '0',
    quantity: '0',
    display_name: null,
    metadata: null,
    price_unit_amount: null,
  });
}

type LineEdit = Pick<CreateInvoiceLine, 'amount' | 'quantity' | 'display_name' | 'metadata' | 'price_unit_amount'>;

function planLineEdit(before: InvoiceLineItem, requested: LineEdit): EditedLine {
  const { edited: _before, ...computed_from } = before.computed_from!;
  const computed = toComputedCharge(before);
  const isSame = new Decimal(requested.amount).eq(before.amount);
  const isComputed =
    new Decimal(requested.amount).eq(computed.amount) && new Decimal(requested.quantity).eq(computed.quantity);
  const { amount, quantity } = requested;
  const fields = {
    amount: new Decimal(amount).toFixed(),
    quantity: new Decimal(quantity).toFixed(),
    display_name: requested.display_name ?? before.display_name,
    metadata: requested.metadata ?? before.metadata,
    price_unit_amount: requested.price_unit_amount ?? (isSame ? before.price_unit_amount : null),
    computed_from: isComputed ? computed_from : { ...computed_from, edited: computed },
  };
  return { kind: 'changed', before, fields };
}
