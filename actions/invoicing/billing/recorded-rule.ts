/**
 * Pricing rule for a recomputed invoice (docs/rules/proration.md, "Usage over a change"). A usage line that was charged separately from the
 * other lines of its period is charged separately again, also if it dates from before the service combined such lines.
 */
import type { BillableItem } from '../../rating/billable-items.ts';
import type { InvoiceBefore } from './invoice-group.ts';

export function applyRecordedRule(items: readonly BillableItem[], before: InvoiceBefore | null): BillableItem[] {
  const alone = new Set(before?.line_items.filter(isAlone).map((line) => line.subscription_line_item_id));
  return items.map((item) => (alone.has(item.id) ? { ...item, chain_terms: null } : item));
}

function isAlone({ computed_from, parent_line_item_id }: InvoiceBefore['line_items'][number]): boolean {
  return Boolean(computed_from?.window_start) && !computed_from?.chain && !parent_line_item_id;
}
