/**
 * Ends a line of a subscription, now or at a requested instant (docs/rules/subscriptions.md, "Lines that come and go"). The unused part of
 * its advance charge is credited. Its arrears are on the invoice of its period.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { deriveLineEnd } from '../../../core/subscriptions/line-changes.ts';
import type { ProrationBehavior } from '../../../core/subscriptions/record.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { applyLineChange } from './apply-line-change.ts';
import { planLineChange } from './change-lines.ts';
import { emitLinesChanged, lockLine } from './lock-lines.ts';

type LineEnding = {
  id: string;
  effective_from: string | null;
  proration_behavior: ProrationBehavior | null;
  author: Author;
};

export async function endLineItem(
  stores: Stores,
  scope: Scope,
  { id, effective_from, proration_behavior, author }: LineEnding,
): Promise<SubscriptionLineItemModel> {
  return runBillingTransaction(stores, async (transaction) => {
    const { subscription, times, item } = await lockLine(stores, id, { scope, database: transaction, author });
    const at = deriveLineEnd(item.line_item, { field: 'effective_from', at: effective_from }, times);
    const plan = await planLineChange(transaction, {
      subscription,
      ends: [{ item, at }],
      begins: [],
      proration_behavior: proration_behavior ?? 'create_prorations',
      author,
    });
    const { ended } = await applyLineChange(stores, transaction, plan);
    await emitLinesChanged(transaction, subscription, author);
    return ended[0]!;
  });
}
