/**
 * Lists the parts of charges that credit notes and refunds of payments returned. A change, a cancellation and a correction credit only the
 * remaining amount, so that nothing is returned twice (docs/rules/credit-notes.md, "No more than was charged"). The returned amounts come
 * from the notes and refunds, rounded to the minor unit, and are not recomputed.
 */

import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toCredit } from '../../../core/invoicing/credit-note/as-credit.ts';
import { computeRefundedLines, type ReturnedAmount } from '../../../core/invoicing/credit-note/refunded-lines.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { LineOnInvoice } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { loadCharges } from './load-charges.ts';
import { listNotedLines } from './noted-lines.ts';

type InvoicedCharge = Pick<LineOnInvoice, 'line'>;

/** Lists one credit for each charge of which a part was returned. */
export async function listReturnedCredits<One extends InvoicedCharge>(
  database: Database,
  scope: Scope,
  invoiced: readonly One[],
): Promise<One[]> {
  const charges = invoiced.filter(({ line }) => new Decimal(line.amount).gt(0));
  if (charges.length === 0) return [];
  const ways = [
    ...(await listNotedCredits(database, scope, charges)),
    ...(await listRefundedCredits(database, scope, charges)),
  ];
  const byLine = groupBy(ways, ({ line_id }) => line_id);
  return charges.flatMap((charge) => {
    const [one, ...others] = byLine.get(charge.line.id) ?? [];
    if (!one) return [];
    const sum = (of: 'amount' | 'tax' | 'prepaid') => sumDecimals([one, ...others].map((way) => way[of] ?? ZERO));
    const returned = { amount: sum('amount'), prepaid: sum('prepaid'), tax: sum('tax') };
    const isNothing = returned.amount.isZero() && returned.tax.isZero();
    return isNothing ? [] : [{ ...charge, line: toCredit(charge.line, returned, one.currency) }];
  });
}

type ReturnedCredit = ReturnedAmount & { readonly line_id: string; readonly currency: string };

/** Lists the amounts that final credit notes returned, by invoice line. */
async function listNotedCredits(
  database: Database,
  scope: Scope,
  charges: readonly InvoicedCharge[],
): Promise<ReturnedCredit[]> {
  const ids = charges.map(({ line }) => line.id);
  const lines = await listNotedLines(scope, ids, database);
  return lines.map(({ invoice_line_item_id: line_id, amount, tax_amount, prepaid_credits_returned, currency }) => {
    const prepaid = new Decimal(prepaid_credits_returned);
    return { line_id, currency, amount: new Decimal(amount), prepaid, tax: new Decimal(tax_amount) };
  });
}

/** Lists the refunds of payments, divided among the lines of the invoice. */
async function listRefundedCredits(
  database: Database,
  scope: Scope,
  charges: readonly InvoicedCharge[],
): Promise<ReturnedCredit[]> {
  const ids = [...new Set(charges.map(({ line }) => line.invoice_id))];
  const invoices = await InvoiceModel.in(scope, database).whereIn('id', ids).where('refunded_amount', '>', 0);
  const returned: ReturnedCredit[] = [];
  for (const invoice of invoices) {
    const { currency } = invoice;
    for (const [line_id, one] of computeRefundedLines(invoice, await loadCharges(invoice, database)))
      returned.push({ ...one, line_id, currency });
  }
  return returned;
}
