/**
 * Changes the paid quantity of fixed lines (docs/rules/subscriptions.md, "Modifications"). The line ends at the date, and one with the new
 * quantity begins there, in the same periods.
 */

import { formatMs } from '../../../core/foundation/time/instant.ts';
import { checkModifiable, planQuantityChanges } from '../../../core/subscriptions/quantity.ts';
import { currentPeriod, gatherItems } from '../../rating/billable-items.ts';
import { type LineStart, planLineChange } from '../subscriptions/change-lines.ts';
import { planLineModification } from './changed-lines.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

export async function planQuantityChange(input: ModifyInput<'quantity_change'>): Promise<PlannedModification> {
  const { database, subscription, params, author, stores } = input;
  checkModifiable(subscription);
  const items = await gatherItems(database, subscription);
  const current = currentPeriod(subscription);
  const changes = planQuantityChanges(params, { items, current, now: author.now.getTime() });
  const begins = changes.map(({ item, quantity, at }): LineStart => {
    const terms = { ...item.line_item, quantity, start_date: formatMs(at) };
    return { terms, price: item.price, meter: null, follows: item };
  });
  const plan = await planLineChange(database, {
    subscription,
    ends: changes,
    begins,
    proration_behavior: 'create_prorations',
    author,
  });
  return planLineModification(stores, plan);
}
