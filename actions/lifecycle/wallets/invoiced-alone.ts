/** A child of a group after the end of its parent (docs/rules/subscriptions.md, "Families"), before the scheduler has closed that end. */

import { formatMs } from '../../../core/foundation/time/instant.ts';
import { laterPeriods } from '../../../core/rating/due.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { currentRecorder } from '../../../storage/postgres/interceptors/dependency-recorder.ts';
import { billedSubscription, currentPeriod } from '../../rating/billable-items.ts';

/** The child as it will be after its parent's end, to invoice its usage by itself. Null if the parent's invoices contain all of it. */
export function buildStandaloneChild(
  child: SubscriptionModel,
  { parent, now }: { parent: SubscriptionModel; now: Date },
): SubscriptionModel | null {
  const parentEnd = billedSubscription(parent).end_ms;
  const billed = billedSubscription(child);
  if (parentEnd === null || (billed.end_ms !== null && billed.end_ms <= parentEnd)) return null;
  const running = currentPeriod(child);
  const isTrial = child.subscription_status === 'trialing';
  if (isTrial) return parentEnd <= running.end ? toStandalone(child) : null;
  // The child's period at its parent's end. If the parent ends inside a period, its last invoice has nothing of that period.
  const reached = [running, ...laterPeriods(billed, running, parentEnd)].at(-1)!;
  currentRecorder()?.row({ ends: formatMs(reached.start) });
  if (reached === running) return toStandalone(child);
  if (now.getTime() < reached.start) return null;
  return toStandalone(child, {
    current_period_start: formatMs(reached.start),
    current_period_end: formatMs(reached.end),
  });
}

function toStandalone(child: SubscriptionModel, moved: Partial<SubscriptionModel> = {}): SubscriptionModel {
  return Object.assign(child.$clone(), {
    subscription_type: 'STANDALONE',
    parent_subscription_id: null,
    ...moved,
  } satisfies Partial<SubscriptionModel>);
}
