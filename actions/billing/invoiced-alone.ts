/** A child of a group behind the end of its parent (docs/rules/subscriptions.md, "Families"), before the scheduler has come to that. */
import { duePeriod } from '../../core/billing/due.ts';
import { formatMs } from '../../core/time/instant.ts';
import type { SubscriptionModel } from '../../storage/models/subscription.ts';
import { billedSubscription, currentPeriod } from './billable-items.ts';

/** As it will be when its parent has ended, to invoice its usage by itself; null where the invoices of its parent have all that there is. */
export function invoicedAlone(
  child: SubscriptionModel,
  { parent, now }: { parent: SubscriptionModel; now: Date },
): SubscriptionModel | null {
  const parentEnd = billedSubscription(parent).end_ms;
  const billed = billedSubscription(child);
  if (parentEnd === null || (billed.end_ms !== null && billed.end_ms <= parentEnd)) return null;
  const running = currentPeriod(child);
  // The last invoice of a parent that ends inside a period has nothing of it; and without a parent a trial ends as that of one by itself does.
  const isTrial = child.subscription_status === 'trialing';
  if (parentEnd < running.end || (isTrial && parentEnd === running.end)) return alone(child);
  if (isTrial || now.getTime() < parentEnd) return null;
  const next = duePeriod(billed, running, parentEnd)?.next;
  if (!next) return null;
  return alone(child, { current_period_start: formatMs(next.start), current_period_end: formatMs(next.end) });
}

function alone(child: SubscriptionModel, moved: Partial<SubscriptionModel> = {}): SubscriptionModel {
  return Object.assign(child.$clone(), {
    subscription_type: 'STANDALONE',
    parent_subscription_id: null,
    ...moved,
  } satisfies Partial<SubscriptionModel>);
}
