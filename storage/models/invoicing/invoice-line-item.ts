import type { Knex } from 'knex';
import { indexById } from '../../../core/foundation/by-id.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import { type Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { ADJUSTMENT_FIELDS, FINAL_FIELDS } from '../../../core/rating/adjustment-fields.ts';
import { type ComputedFrom } from '../../../core/rating/computed-from.ts';
import type { LineDiscount } from '../../../core/rating/discounts.ts';
import { joinBatch } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface InvoiceLineItemModel extends InvoiceLineItem {}

export class InvoiceLineItemModel extends ScopedModel {
  static override tableName = 'invoice_line_items';
  static override recordName = 'invoice line item';
  /** Lines are created with the invoice, whose totals are audited. */
  static override isAudited = false;
  static override record = InvoiceLineItem;
  static override get jsonAttributes() {
    return [...super.jsonAttributes, 'discounts'];
  }

  /** Index among the lines of the invoice, from 0; null if an earlier version wrote it. */
  declare position: number | null;
  /**
   * The subscription's coupons that discounted the line, or whose discount it returns; null for a line without coupons, and for
   * lines of an earlier version.
   */
  declare discounts: LineDiscount[] | null;
}

/** Columns that determine the charge of a line. */
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
  ...ADJUSTMENT_FIELDS,
  'discounts',
  'taxes',
  'period_start',
  'period_end',
  'created_at',
] as const;

/** Parts of `computed_from` that describe only the pricing, not the charge; they are most of its size. */
const NOT_CHARGED = ['price', 'breakdown', 'high_water', 'buckets'];

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
 * Every line of a subscription's items on an invoice that is not void, oldest first, on any customer's invoice. There are as many
 * as past periods, so no model is created for each.
 * `since` limits the result to lines whose time ends then or later, `fixed_since` does so for fixed charges; the result may contain
 * others. Three steps use one index each: with a single statement the planner chooses nested loops while it has no statistics.
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
    const items = [
      ...queries.flatMap(({ line_items }) => line_items ?? []),
      ...(await listItems(scope, queries, database)),
    ];
    const lines: InvoicedItemLine[] = await database('invoice_line_items')
      .where({ tenant_id, environment_id, status: 'published' })
      .where((either) => within(either, items, queries))
      .orderBy(['created_at', 'invoice_id', 'position', 'id'])
      .select([...CHARGED])
      .select(database.raw('computed_from - ?::text[] as computed_from', [NOT_CHARGED]));
    if (lines.length === 0) return queries.map(() => []);
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

/** Lists the items of the subscriptions whose items the query does not contain. */
async function listItems(
  { tenant_id, environment_id }: Scope,
  queries: readonly InvoicedLinesQuery[],
  database: Database,
): Promise<InvoicedItem[]> {
  const unknown = queries.filter(({ line_items }) => !line_items);
  if (unknown.length === 0) return [];
  return database('subscription_line_items')
    .where({ tenant_id, environment_id })
    .whereRaw('subscription_id = any(?)', [unknown.map(({ subscription_id }) => subscription_id)])
    .select('id', 'subscription_id', 'price_type');
}

/**
 * Condition for the lines of the requested items. Its lower bound is the earliest of all queries; it has no lower bound
 * if one of the queries has none.
 */
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
export type InvoicedItem = {
  readonly id: string;
  readonly subscription_id: string;
  readonly price_type: 'FIXED' | 'USAGE';
};
type InvoicedLinesQuery = {
  readonly subscription_id: string;
  readonly since?: Milliseconds | undefined;
  readonly fixed_since?: Milliseconds | undefined;
  /** All items of the subscription, if they are known. */
  readonly line_items?: readonly InvoicedItem[] | undefined;
};

/** Deletes the lines of an invoice before it is recomputed or edited, which creates them again. */
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

/** Records the taxes on these lines, and the credits that pay for them, when the invoice becomes final. */
export async function updateLineAdjustments(
  scope: Scope,
  lines: readonly InvoiceLineItem[],
  transaction: Database,
): Promise<void> {
  const { tenant_id, environment_id } = scope;
  const key = `update line adjustments ${tenant_id} ${environment_id}`;
  await joinBatch(transaction, { key, query: lines }, async (all) => {
    const taxed = all.flat();
    if (taxed.length === 0) return all;
    await transaction.raw(
      `update invoice_line_items line
          set taxes = changed.taxes, ${FINAL_FIELDS.map((field) => `${field} = changed.${field}`).join(', ')}
         from unnest(?::text[], ?::jsonb[], ${FINAL_FIELDS.map(() => '?::numeric[]').join(', ')})
              as changed (id, taxes, ${FINAL_FIELDS.join(', ')})
        where line.tenant_id = ? and line.environment_id = ? and line.id = changed.id`,
      [
        taxed.map(({ id }) => id),
        taxed.map(({ taxes }) => (taxes ? JSON.stringify(taxes) : null)) as never,
        ...FINAL_FIELDS.map((field) => taxed.map((line) => line[field])),
        tenant_id,
        environment_id,
      ],
    );
    return all;
  });
}
