import type { Scope } from '../../../core/foundation/scope.ts';
import { Invoice, type PaymentStatus } from '../../../core/invoicing/invoice/record.ts';
import { joinBatch } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import type { PageQuery, SqlCondition } from '../foundation/page.ts';
import { UNPAID_INVOICE } from './unpaid.ts';

export interface InvoiceModel extends Invoice {
  /** The part of `amount_paid` that was recorded by hand, without a payment. */
  paid_by_hand: string;
  /** The customer's exemption that applied when the invoice became final; null without one. */
  tax_exempt: 'exempt' | 'reverse' | null;
}

export class InvoiceModel extends ScopedModel {
  static override tableName = 'invoices';
  static override recordName = 'invoice';
  static override record = Invoice;

  /** Invoices that became final in this time, including void ones, in the order of finalization, after the invoice with the id `after`. */
  static async listFinal(
    scope: Scope,
    { from, to, only, after, limit, database }: FinalInvoicesQuery,
  ): Promise<InvoiceModel[]> {
    const found = InvoiceModel.in(scope, database)
      .whereIn('invoice_status', ['FINALIZED', 'VOIDED'])
      .where('finalized_at', '>=', from)
      .where('finalized_at', '<', to)
      .orderByRaw(IN_ORDER)
      .limit(limit);
    if (only) void found.whereRaw(...only);
    if (after === null) return found;
    const { finalized_at, invoice_number } = await InvoiceModel.fetch(scope, after, { database });
    const number = invoice_number ?? '';
    return found.whereRaw(`(${IN_ORDER}) > (?, length(?), ?, ?)`, [finalized_at!, number, number, after]);
  }
}

/** Narrows a list to any of the payment statuses. OVERDUE is a final invoice with an unpaid amount after its due date. */
export function narrowByPayment(
  invoices: PageQuery<InvoiceModel>,
  statuses: readonly (PaymentStatus | 'OVERDUE')[],
  now: Date,
): void {
  const stored = statuses.filter((status) => status !== 'OVERDUE');
  void invoices.where((either) => {
    void either.whereIn('payment_status', stored);
    if (statuses.includes('OVERDUE')) void either.orWhereRaw(OVERDUE, [now.toISOString()]);
  });
}

/** Narrows a list to the overdue invoices, or to all others, among them those without a due date. */
export function narrowByOverdue(invoices: PageQuery<InvoiceModel>, isOverdue: boolean, now: Date): void {
  void invoices.whereRaw(isOverdue ? OVERDUE : `(${OVERDUE}) is not true`, [now.toISOString()]);
}

/** SQL condition of an overdue invoice; its parameter is the instant. */
const OVERDUE = `${UNPAID_INVOICE} and due_date < ?`;

/** SQL order of final invoices: by instant, then by number, as in the index (sql/postgres/0256-final-in-order.sql). */
const IN_ORDER = `finalized_at, length(coalesce(invoice_number, '')), coalesce(invoice_number, '') collate "C", id`;

/** Instants are RFC 3339; the end is exclusive. */
type FinalInvoicesQuery = {
  readonly from: string;
  readonly to: string;
  /** A further condition with its bindings. */
  readonly only?: SqlCondition | undefined;
  readonly after: string | null;
  readonly limit: number;
  readonly database: Database;
};

/** The subscription's own invoice counter; 0 before the first invoice. */
export function findLastBillingSequence(scope: Scope, subscription_id: string, database: Database): Promise<number> {
  const { tenant_id, environment_id } = scope;
  const key = `last billing sequence ${tenant_id} ${environment_id}`;
  return joinBatch(database, { key, query: subscription_id }, async (ids) => {
    const { rows } = await database.raw(
      `select asked.id, coalesce(max(invoices.billing_sequence), 0) as last
         from unnest(?::text[]) as asked (id)
         left join invoices on invoices.tenant_id = ? and invoices.environment_id = ? and invoices.subscription_id = asked.id
        group by asked.id`,
      [[...ids], tenant_id, environment_id],
    );
    const last = new Map(rows.map((row: { id: string; last: number }) => [row.id, row.last]));
    return ids.map((id) => last.get(id) as number);
  });
}
