/**
 * What of a charge has come back otherwise, as credits of it: by credit notes, and by refunds of payments of its invoice. A change, a
 * cancellation and a correction give back what these have left, so that nothing comes twice (docs/rules/credit-notes.md, "No
 * more than was charged").
 */
import { asCredit } from '../../core/credit-note/as-credit.ts';
import { refundedOfLines } from '../../core/credit-note/refunded-lines.ts';
import { Decimal, sumOf, ZERO } from '../../core/decimal.ts';
import { groupBy } from '../../core/group-by.ts';
import type { Scope } from '../../core/scope.ts';
import { CreditNoteModel } from '../../storage/models/credit-note.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel, type LineOnInvoice } from '../../storage/models/invoice-line-item.ts';
import type { Database } from '../../storage/stores.ts';
import { notedLines } from './noted-lines.ts';

/** Whatever else is known of it. */
type Invoiced = Pick<LineOnInvoice, 'line'>;

/** One for each charge of which something has come back. */
export async function returnedAsCredits<One extends Invoiced>(
  database: Database,
  scope: Scope,
  invoiced: readonly One[],
): Promise<One[]> {
  const charges = invoiced.filter(({ line }) => new Decimal(line.amount).gt(0));
  if (charges.length === 0) return [];
  const noted = await notedOf(database, scope, charges);
  const refunded = await refundedOf(database, scope, charges);
  return charges.flatMap((charge) => {
    const { id } = charge.line;
    const { amount = ZERO, currency } = refunded.get(id) ?? {};
    const returned = amount.plus(noted.get(id)?.amount ?? ZERO);
    const of = noted.get(id)?.currency ?? currency;
    return returned.isZero() || of === undefined ? [] : [{ ...charge, line: asCredit(charge.line, returned, of) }];
  });
}

type Returned = { readonly amount: Decimal; readonly currency: string };

/** By credit notes that are final. */
async function notedOf(database: Database, scope: Scope, charges: readonly Invoiced[]): Promise<Map<string, Returned>> {
  const ids = charges.map(({ line }) => line.id);
  const byLine = groupBy(await notedLines(scope, ids, database), ({ invoice_line_item_id }) => invoice_line_item_id);
  return new Map(
    [...byLine].map(([id, those]) => {
      const amount = sumOf(those.map((one) => new Decimal(one.amount)));
      return [id, { amount, currency: those[0]!.currency }];
    }),
  );
}

/** By refunds of payments, of which an invoice has its share on each line. */
async function refundedOf(
  database: Database,
  scope: Scope,
  charges: readonly Invoiced[],
): Promise<Map<string, Returned>> {
  const ids = [...new Set(charges.map(({ line }) => line.invoice_id))];
  const invoices = await InvoiceModel.in(scope, database).whereIn('id', ids).where('refunded_amount', '>', 0);
  const returned = new Map<string, Returned>();
  for (const invoice of invoices) {
    const lines = await InvoiceLineItemModel.in(invoice, database).where({
      invoice_id: invoice.id,
      status: 'published',
    });
    const amounts = refundedOfLines(invoice, lines, await refundNotes(database, invoice));
    for (const [id, amount] of amounts) returned.set(id, { amount, currency: invoice.currency });
  }
  return returned;
}

/** What of its `refunded_amount` credit notes gave back. */
export async function refundNotes(database: Database, invoice: InvoiceModel): Promise<Decimal> {
  const notes = await CreditNoteModel.in(invoice, database).where({
    invoice_id: invoice.id,
    credit_note_status: 'FINALIZED',
    credit_note_type: 'REFUND',
    status: 'published',
  });
  return sumOf(notes.map(({ total_amount }) => new Decimal(total_amount)));
}
