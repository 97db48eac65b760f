/** Table `invoice_line_items`. */
import type { Knex } from 'knex';
import { indexById } from '../../core/by-id.ts';
import type { LineDiscount } from '../../core/coupon/discounts.ts';
import { groupBy } from '../../core/group-by.ts';
import { type ComputedFrom } from '../../core/invoice/computed-from.ts';
import { type Invoice, InvoiceLineItem } from '../../core/invoice/record.ts';
import type { Scope } from '../../core/scope.ts';
import type { Milliseconds } from '../../core/time/instant.ts';
import type { Database } from '../stores.ts';
import { joinBatch } from './batched.ts';
import { ScopedModel } from './model.ts';

export interface InvoiceLineItemModel extends InvoiceLineItem {}

export class InvoiceLineItemModel extends ScopedModel {
  static override tableName = 'invoice_line_items';
  static override recordName = 'invoice line item';
  /** They are made with their invoice, whose totals tell of them. */
  static override isAudited = false;
  static override record = InvoiceLineItem;
  static override get jsonAttributes() {
    return [...super.jsonAttributes, 'discounts'];
  }

  /** Its place among the lines of its invoice, from 0. */
  /** Null where a version before this one wrote it. */
  declare position: number | null;
  /** Which coupons of the subscription took what off it, or are given back by it; null without, and of what an earlier version wrote. */
  declare discounts: LineDiscount[] | null;
}

/** As much of a line as says what was charged by it. */
const CHARGED = [
  'id',
  'tenant_id',
  'environment_id',
  'invoice_id',
  'subscription_id',
  'subscription_line_item_id',
  'parent_line_item_id',
  'price_type',
  'quantity',
  'amount',
  'line_item_discount',
  'invoice_level_discount',
  'prepaid_credits_applied',
  'discounts',
  'taxes',
  'period_start',
  'period_end',
  'created_at',
] as const;

/** What a line was computed from is mostly what it was priced by, which says nothing of what was charged. */
const NOT_CHARGED = ['price', 'breakdown', 'high_water', 'buckets'];

/** With what its invoice is. */
export type LineOnInvoice = {
  readonly line: Pick<InvoiceLineItemModel, (typeof CHARGED)[number]> & {
    readonly computed_from?: Omit<ComputedFrom, 'price' | 'breakdown' | 'high_water' | 'buckets'> | null | undefined;
  };
  readonly invoice: Pick<
    Invoice,
    'invoice_status' | 'billing_reason' | 'customer_id' | 'subscription_id' | 'period_end'
  >;
};

/**
 * Every line of the items of a subscription on an invoice that is not void, oldest first, on whosever invoice it stands. There are as many
 * as it has had periods: no model is made of each. `since`: those for the time that ends then or later; `fixed_since`: those of fixed
 * charges that do; and perhaps others. In three steps, each with an index of its own: of one statement the database makes a loop in a
 * loop where it does not know yet how much there is.
 */
export function listLinesOnInvoices(
  scope: Scope,
  of: InvoicedLinesQuery,
  database: Database,
): Promise<LineOnInvoice[]> {
  const { tenant_id, environment_id } = scope;
  const key = `lines on invoices ${tenant_id} ${environment_id}`;
  return joinBatch(database, { key, query: of }, async (queries) => {
    const subscription_ids = queries.map(({ subscription_id }) => subscription_id);
    const items: InvoicedItem[] = await database('subscription_line_items')
      .where({ tenant_id, environment_id })
      .whereRaw('subscription_id = any(?)', [subscription_ids])
      .select('id', 'subscription_id', 'price_type');
    const lines: InvoicedItemLine[] = await database('invoice_line_items')
      .where({ tenant_id, environment_id, status: 'published' })
      .where((either) => within(either, items, queries))
      .orderBy(['created_at', 'invoice_id', 'position', 'id'])
      .select([...CHARGED])
      .select(database.raw('computed_from - ?::text[] as computed_from', [NOT_CHARGED]));
    const found: InvoicedItemInvoice[] = await database('invoices')
      .where({ tenant_id, environment_id, status: 'published' })
      .whereRaw('id = any(?)', [[...new Set(lines.map(({ invoice_id }) => invoice_id))]])
      .select('id', 'invoice_status', 'billing_reason', 'customer_id', 'subscription_id', 'period_end');
    const invoices = indexById(found.filter(({ invoice_status }) => invoice_status !== 'VOIDED'));
    const subscriptionById = new Map(items.map((item) => [item.id, item.subscription_id]));
    const bySubscription = groupBy(lines, (line) => subscriptionById.get(line.subscription_line_item_id!));
    const onInvoice = (line: InvoicedItemLine): LineOnInvoice[] => {
      const invoice = invoices.get(line.invoice_id);
      return invoice ? [{ line, invoice }] : [];
    };
    return subscription_ids.map((id) => (bySubscription.get(id) ?? []).flatMap(onInvoice));
  });
}

/** Those of the items that are asked for: of all who ask by the earliest bound, and by none where one has none. */
function within(
  either: Knex.QueryBuilder,
  items: readonly InvoicedItem[],
  queries: readonly InvoicedLinesQuery[],
): void {
  const first = (bounds: readonly (Milliseconds | undefined)[]) =>
    Math.min(...bounds.map((bound) => bound ?? Number.NEGATIVE_INFINITY));
  for (const [isFixed, bound] of [
    [false, first(queries.map(({ since }) => since))],
    [true, first(queries.map(({ since, fixed_since }) => since ?? fixed_since))],
  ] as const) {
    const ids = items.filter(({ price_type }) => (price_type === 'FIXED') === isFixed).map(({ id }) => id);
    if (Number.isFinite(bound))
      void either.orWhereRaw('subscription_line_item_id = any(?) and period_end >= ?', [ids, new Date(bound)]);
    else void either.orWhereRaw('subscription_line_item_id = any(?)', [ids]);
  }
}

type InvoicedItemLine = LineOnInvoice['line'];
type InvoicedItemInvoice = LineOnInvoice['invoice'] & { readonly id: string };
type InvoicedItem = { readonly id: string; readonly subscription_id: string; readonly price_type: 'FIXED' | 'USAGE' };
type InvoicedLinesQuery = {
  readonly subscription_id: string;
  readonly since?: Milliseconds | undefined;
  readonly fixed_since?: Milliseconds | undefined;
};

/** Of an invoice that is computed anew: they are made again with it, and told with it. */
export async function deleteInvoiceLines(scope: Scope, invoice_id: string, transaction: Database): Promise<void> {
  const { tenant_id, environment_id } = scope;
  const key = `take lines away ${tenant_id} ${environment_id}`;
  await joinBatch(transaction, { key, query: invoice_id }, async (invoice_ids) => {
    await InvoiceLineItemModel.in(scope, transaction)
      .whereIn('invoice_id', [...invoice_ids])
      .delete();
    return invoice_ids;
  });
}

/** Of an invoice that becomes final: what these lines of it were taxed, and what credits have paid of them. */
export async function recordAppliedAmounts(
  scope: Scope,
  lines: readonly InvoiceLineItem[],
  transaction: Database,
): Promise<void> {
  const { tenant_id, environment_id } = scope;
  const key = `note settled ${tenant_id} ${environment_id}`;
  await joinBatch(transaction, { key, query: lines }, async (all) => {
    const taxed = all.flat();
    if (taxed.length === 0) return all;
    await transaction.raw(
      `update invoice_line_items line
          set tax_amount = noted.tax_amount, included_tax_amount = noted.included_tax_amount, taxes = noted.taxes,
              prepaid_credits_applied = noted.prepaid_credits_applied
         from unnest(?::text[], ?::numeric[], ?::numeric[], ?::jsonb[], ?::numeric[])
              as noted (id, tax_amount, included_tax_amount, taxes, prepaid_credits_applied)
        where line.tenant_id = ? and line.environment_id = ? and line.id = noted.id`,
      [
        taxed.map(({ id }) => id),
        taxed.map(({ tax_amount }) => tax_amount),
        taxed.map(({ included_tax_amount }) => included_tax_amount),
        taxed.map(({ taxes }) => (taxes ? JSON.stringify(taxes) : null)) as never,
        taxed.map(({ prepaid_credits_applied }) => prepaid_credits_applied),
        tenant_id,
        environment_id,
      ],
    );
    return all;
  });
}
