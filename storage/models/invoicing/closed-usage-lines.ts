/** Usage lines of final invoices, and the lines that correct them, with the positions in the log up to which they counted events. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { InvoiceStatus } from '../../../core/invoicing/invoice/record.ts';
import type { ComputedFrom } from '../../../core/rating/computed-from.ts';
import type { Database } from '../../foundation/stores.ts';

export type ClosedUsageLine = {
  readonly id: string;
  readonly invoice_id: string;
  readonly subscription_id: string | null;
  readonly period_start: string;
  readonly period_end: string;
  readonly computed_from: ComputedFrom;
  readonly invoice_number: string | null;
  readonly finalized_at: string;
};

/** Keys of `computed_from` that concern only pricing. They are most of its size, so that they are not read. */
const PRICING_KEYS = ['price', 'breakdown', 'buckets', 'allowances'];

/**
 * Lists the usage lines of invoices that became final since an instant, latest first. Corrections of lines are left out, and lines of threshold
 * invoices, because their period is not over.
 */
export async function listClosedUsageLines(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { since, limit }: { readonly since: Date; readonly limit: number },
): Promise<ClosedUsageLine[]> {
  return database('invoices as i')
    .join('invoice_line_items as l', {
      'l.tenant_id': 'i.tenant_id',
      'l.environment_id': 'i.environment_id',
      'l.invoice_id': 'i.id',
    })
    .where({ 'i.tenant_id': tenant_id, 'i.environment_id': environment_id, 'i.status': 'published' })
    .where('i.invoice_status', FINAL)
    .where('i.finalized_at', '>=', since)
    .whereRaw(`i.billing_reason is distinct from 'THRESHOLD_BILLING'`)
    .where({ 'l.status': 'published', 'l.price_type': 'USAGE' })
    .whereRaw(`coalesce(l.parent_line_item_id, '') = '' and l.computed_from ->> 'high_water' is not null`)
    .orderBy([
      { column: 'i.finalized_at', order: 'desc' },
      { column: 'i.id', order: 'desc' },
      { column: 'l.id', order: 'desc' },
    ])
    .limit(limit)
    .select('l.id', 'l.invoice_id', 'l.subscription_id', 'l.period_start', 'l.period_end')
    .select('i.invoice_number', 'i.finalized_at')
    .select(database.raw('l.computed_from - ?::text[] as computed_from', [PRICING_KEYS]));
}

/** Other states have no late events: a draft includes them, a void or skipped invoice charges nothing. */
const FINAL: InvoiceStatus = 'FINALIZED';

export type CountingLine = Omit<ClosedUsageLine, 'finalized_at'> & {
  /** The line that this one corrects; itself for a charge. */
  readonly charge_id: string;
  readonly invoice_status: InvoiceStatus;
};

/** Lists the lines and their corrections on invoices that are not void, oldest first. */
export async function listChargeLines(
  database: Database,
  { tenant_id, environment_id }: Scope,
  charge_ids: readonly string[],
): Promise<CountingLine[]> {
  if (charge_ids.length === 0) return [];
  return database('invoice_line_items as l')
    .join('invoices as i', {
      'i.tenant_id': 'l.tenant_id',
      'i.environment_id': 'l.environment_id',
      'i.id': 'l.invoice_id',
    })
    .where({ 'l.tenant_id': tenant_id, 'l.environment_id': environment_id, 'l.status': 'published' })
    .whereRaw('(l.id = any(?) or l.parent_line_item_id = any(?))', [charge_ids as never, charge_ids as never])
    .where('i.status', 'published')
    .whereNot('i.invoice_status', 'VOIDED')
    .orderBy(['l.created_at', 'l.id'])
    .select('l.id', 'l.invoice_id', 'l.subscription_id', 'l.period_start', 'l.period_end')
    .select('i.invoice_number', 'i.invoice_status')
    .select(
      database.raw(`case when l.id = any(?) then l.id else l.parent_line_item_id end as charge_id`, [
        charge_ids as never,
      ]),
      database.raw(`coalesce(l.computed_from, '{}') - ?::text[] as computed_from`, [PRICING_KEYS]),
    );
}
