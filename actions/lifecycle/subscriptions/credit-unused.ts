/** Credits the unused part of a subscription's advance charges when it ends (docs/rules/proration.md, "Credits of a cancellation"). */

import { invalid } from '../../../core/foundation/error.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { isBilledImmediately } from '../../../core/rating/change.ts';
import { hasOwnPeriods } from '../../../core/rating/charges.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { type SettledChange, type Settlement, settleChange } from '../../invoicing/invoices/settle-change.ts';
import { type BillableItem, gatherItems, toBilledSubscription } from '../../rating/billable-items.ts';
import { planLineChange, withoutCancellation } from './change-lines.ts';

type CreditUnusedInput = {
  readonly subscription: SubscriptionModel;
  readonly at: Milliseconds;
  readonly author: Author;
};
/** One settlement per customer who was billed. */
export type CreditedUnusedTime = { readonly lines: Settlement['lines']; readonly settled: readonly SettledChange[] };

/**
 * Credits the unused part of advance charges. `transaction` holds the lock on the subscription's row. Returns null if nothing is credited.
 */
export async function creditUnused(
  transaction: Transaction,
  unused: CreditUnusedInput,
): Promise<CreditedUnusedTime | null> {
  const settlements = await planCredits(transaction, unused);
  const settled: SettledChange[] = [];
  for (const settlement of settlements) settled.push(await settleChange(transaction, settlement));
  return settled.length === 0 ? null : { lines: settlements.flatMap(({ lines }) => lines), settled };
}

async function planCredits(database: Database, { subscription, at, author }: CreditUnusedInput): Promise<Settlement[]> {
  // The scheduled cancellation is ignored, because the advance charges were made before it.
  const running = withoutCancellation(subscription);
  // A line with a later start was charged in advance as well, and will never be active.
  const items = (await gatherItems(database, subscription)).filter(({ line_item }) => !isOver(line_item, at));
  const ends = items.map((item) => ({ item, at }));
  const change = { subscription: running, ends, begins: [], proration_behavior: 'create_prorations', author } as const;
  const { settlement, refunds } = await planLineChange(database, change);
  const reason = 'SUBSCRIPTION_CANCELLATION';
  return [settlement ?? [], ...refunds].flat().map((each) => ({ ...each, reason }));
}

/** Whether the line has ended by an instant, even if it is charged beyond its end. */
function isOver({ end_date }: BillableItem['line_item'], at: Milliseconds): boolean {
  return Boolean(end_date) && toInstant(end_date!) <= at;
}

/** Refuses a credit if a line has a billing period of its own at that instant: such a period is not credited in parts. */
export async function checkOnePeriod(
  database: Database,
  { subscription, at }: Pick<CreditUnusedInput, 'subscription' | 'at'>,
): Promise<void> {
  const items = (await gatherItems(database, subscription)).filter(
    ({ start_ms, line_item }) => start_ms <= at && !isOver(line_item, at),
  );
  const billed = toBilledSubscription(subscription);
  const other = items.find(
    (item) => isBilledImmediately(item) && item.billing_period !== 'ONETIME' && hasOwnPeriods(item, billed),
  );
  if (other)
    throw invalid(
      'proration_behavior',
      `create_prorations is not possible while line item ${other.id} has another billing period`,
      { allowed: ['none'] },
    );
}
