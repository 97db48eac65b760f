/**
 * Rule for a recomputed invoice (docs/rules/proration.md, "Usage over a change"). A usage line that was charged by itself stays so. This
 * includes lines that were computed before the service charged the lines of one period as one.
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
