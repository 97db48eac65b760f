/** What an invoice has charged, line by line, with what came back of it in whichever way: for whoever gives back more. */
import type { CreditableLine } from '../../core/credit-note/left-to-give-back.ts';
import type { Decimal } from '../../core/decimal.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import type { Database } from '../../storage/stores.ts';
import { creditableLines } from './creditable-lines.ts';
import { refundNotes } from './returned-as-credits.ts';

export type Charges = { readonly lines: readonly CreditableLine[]; readonly by_notes: Decimal };

export async function chargesOf(invoice: InvoiceModel, database: Database): Promise<Charges> {
  return { lines: await creditableLines(invoice, database), by_notes: await refundNotes(database, invoice) };
}
