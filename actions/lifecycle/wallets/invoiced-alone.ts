/**
 * Invoices a grouped child separately after the end of its parent (docs/rules/subscriptions.md, "Families"), if the scheduler has not yet
 * removed it from the group.
 */

import { formatMs, type Milliseconds } from '../../../core/foundation/time/instant.ts';
import { laterPeriods } from '../../../core/rating/due.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';

/**
 * A child subscription as a standalone one. `child` is its current state; null if the parent's invoices contain all of
 * its usage. `starts_ms` is the instant from which it may be invoiced by itself.
 */
type StandaloneChild = { readonly child: SubscriptionModel | null; readonly starts_ms?: Milliseconds };

/** Builds the child as it will be after its parent's end, to invoice its usage by itself. */
export function buildStandaloneChild(
  child: SubscriptionModel,
  { parent, now }: { parent: SubscriptionModel; now: Date },
): StandaloneChild {
  const parentEnd = toBilledSubscription(parent).end_ms;
  const billed = toBilledSubscription(child);
  if (parentEnd === null || (billed.end_ms !== null && billed.end_ms <= parentEnd)) return { child: null };
  const running = currentPeriod(child);
  const isTrial = child.subscription_status === 'trialing';
  if (isTrial) return { child: parentEnd <= running.end ? toStandalone(child) : null };
  // The child's period at its parent's end. If the parent ends inside a period, the parent's last invoice contains no charge of the child's
  // period.
  const reached = [running, ...laterPeriods(billed, running, parentEnd)].at(-1)!;
  const starts_ms = reached.start;
  if (reached === running) return { child: toStandalone(child), starts_ms };
  if (now.getTime() < reached.start) return { child: null, starts_ms };
  const period = { current_period_start: formatMs(reached.start), current_period_end: formatMs(reached.end) };
  return { child: toStandalone(child, period), starts_ms };
}

function toStandalone(child: SubscriptionModel, moved: Partial<SubscriptionModel> = {}): SubscriptionModel {
  return Object.assign(child.$clone(), {
    subscription_type: 'STANDALONE',
    parent_subscription_id: null,
    ...moved,
  } satisfies Partial<SubscriptionModel>);
}
