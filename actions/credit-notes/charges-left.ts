/** What of the charges of an invoice has not come back yet, in whichever way. */
import { refundableOf } from '../../core/credit-note/refunded-lines.ts';
import type { Decimal } from '../../core/decimal.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import type { Database } from '../../storage/stores.ts';
import { creditableLines } from './creditable-lines.ts';
import { refundNotes } from './returned-as-credits.ts';

export async function chargesLeft(invoice: InvoiceModel, database: Database): Promise<Decimal> {
  const lines = await creditableLines(invoice, database);
  return refundableOf(invoice, lines, await refundNotes(database, invoice));
}
