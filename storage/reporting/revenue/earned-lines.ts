/** Lines of invoices that are not void, with the fields of their invoices that determine when they were earned, and how final they are. */

import { indexById } from '../../../core/foundation/by-id.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs, type Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import type { EarnedLine } from '../../../core/invoicing/revenue/line.ts';
import { ADJUSTMENT_FIELDS } from '../../../core/rating/adjustment-fields.ts';
import type { Database } from '../../foundation/stores.ts';
import { InvoiceModel } from '../../models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../models/invoicing/invoice-line-item.ts';

const LINE = [
  'id',
  'invoice_id',
  'customer_id',
  'subscription_id',
  'subscription_line_item_id',
  'parent_line_item_id',
  'price_type',
  'amount',
  'currency',
  'period_start',
  'period_end',
  ...ADJUSTMENT_FIELDS,
  'tax_amount',
] as const;

const INVOICE = [
  'id',
  'invoice_status',
  'billing_reason',
  'idempotency_key',
  'period_start',
  'period_end',
  'finalized_at',
  'created_at',
] as const;

type EarnedLinesQuery = {
  readonly subscription_ids: readonly string[];
  /** Ids of customers; their invoices without a subscription are included. */
  readonly customer_ids: readonly string[];
  readonly range: Period;
};

/** Lists the lines of invoices that are not void. */
export async function listEarnedLines(
  scope: Scope,
  query: EarnedLinesQuery,
  database: Database,
): Promise<EarnedLine[]> {
  const [start, end] = [formatMs(query.range.start), formatMs(query.range.end)];
  const lines = await buildEarnedLinesQuery(scope, query, database)
    .whereRaw('(period_end is null or period_end > ? or (period_end = period_start and period_end >= ?))', [
      start,
      start,
    ])
    .whereRaw('(period_start is null or period_start < ?)', [end]);
  const found = await withInvoices(scope, lines, database);
  return found.filter(({ invoice }) => invoice.invoice_status !== 'VOIDED');
}

/** Lists lines with any invoice status. Lines with a period are included if it ends at or after `since`. */
export async function listLinesSince(
  scope: Scope,
  { since, ...whose }: Omit<EarnedLinesQuery, 'range'> & { since: Milliseconds | null },
  database: Database,
): Promise<EarnedLine[]> {
  const lines = buildEarnedLinesQuery(scope, whose, database);
  if (since !== null) void lines.whereRaw('(period_end is null or period_end >= ?)', [formatMs(since)]);
  return withInvoices(scope, await lines, database);
}

export async function listInvoiceLines(
  scope: Scope,
  ids: readonly string[],
  database: Database,
): Promise<EarnedLine[]> {
  return withInvoices(scope, await lineQuery(scope, database).whereIn('invoice_id', [...ids]), database);
}

async function withInvoices(scope: Scope, found: readonly unknown[], database: Database): Promise<EarnedLine[]> {
  const lines = found as readonly EarnedLine['line'][];
  const ids = [...new Set(lines.map(({ invoice_id }) => invoice_id))];
  const invoices: Pick<Invoice, (typeof INVOICE)[number]>[] = await InvoiceModel.in(scope, database)
    .select([...INVOICE])
    .whereIn('id', ids)
    .where('status', 'published');
  const known = indexById(invoices);
  return lines.flatMap((line) => {
    const invoice = known.get(line.invoice_id);
    return invoice ? [{ line, invoice }] : [];
  });
}

/** Builds a query of lines. Lines without a period are always included, because the invoice determines their time. */
function buildEarnedLinesQuery(
  scope: Scope,
  { subscription_ids, customer_ids }: Omit<EarnedLinesQuery, 'range'>,
  database: Database,
) {
  return lineQuery(scope, database).where(
    (whose) =>
      void whose
        .whereIn('subscription_id', [...subscription_ids])
        .orWhere((other) => void other.whereNull('subscription_id').whereIn('customer_id', [...customer_ids])),
  );
}

function lineQuery(scope: Scope, database: Database) {
  return InvoiceLineItemModel.in(scope, database)
    .select([...LINE])
    .where('status', 'published')
    .orderBy('id');
}
