/**
 * An inherited subscription takes state, period, anchor and end from its parent. Only the days on which its customer
 * joins and leaves are its own (docs/rules/subscriptions.md, "Families").
 */
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import type { Subscription } from './record.ts';

const PROPAGATED_FIELDS = [
  'plan_id',
  'subscription_status',
  'billing_period',
  'billing_period_count',
  'cancel_at_period_end',
] as const;
const PROPAGATED_DATES = [
  'opens_at',
  'billing_anchor',
  'current_period_start',
  'current_period_end',
  'trial_start',
  'trial_end',
  'cancel_at',
  'cancelled_at',
] as const;

/** A subscription in a hierarchy. `opens_at` is its start if that is in the future. */
type PropagatedSubscription = Subscription & { readonly opens_at?: string | null };

/** Plans the changes that a child inherits; null if nothing changes. A customer who has left does not return. */
export function planInheritedChanges(
  child: PropagatedSubscription,
  parent: PropagatedSubscription,
  now: Milliseconds,
): Partial<Subscription> | null {
  if (child.subscription_status === 'cancelled') return null;
  if (hasEnded(child, now)) {
    const { end_date } = child;
    return { subscription_status: 'cancelled', cancelled_at: end_date!, cancel_at: end_date! };
  }
  const changes: Partial<Record<string, unknown>> = {};
  for (const field of PROPAGATED_FIELDS) if (child[field] !== parent[field]) changes[field] = parent[field];
  for (const field of PROPAGATED_DATES)
    if (!isSameDate(child[field], parent[field])) changes[field] = parent[field] ?? null;
  if (parent.subscription_status === 'cancelled') changes.end_date = deriveInheritedEnd(child, parent);
  // A draft does not begin before its parent.
  if (child.subscription_status === 'draft' && toInstant(child.start_date) < toInstant(parent.start_date))
    changes.start_date = parent.start_date;
  return Object.keys(changes).length > 0 ? (changes as Partial<Subscription>) : null;
}

function hasEnded({ end_date }: Subscription, now: Milliseconds): boolean {
  return Boolean(end_date) && toInstant(end_date!) <= now;
}

/** End of the parent, limited to the active interval of the child. */
function deriveInheritedEnd(child: Subscription, parent: Subscription): string {
  const ended = deriveEndInstant(parent);
  const own = child.end_date ? toInstant(child.end_date) : Number.POSITIVE_INFINITY;
  return formatMs(Math.max(Math.min(ended, own), toInstant(child.start_date)));
}

/** End of a subscription that is over. Of several end dates the earliest took effect. */
export function deriveEndInstant({
  end_date,
  cancel_at,
  cancelled_at,
  current_period_end,
}: EndedSubscription): Milliseconds {
  const ends = [end_date, cancel_at].flatMap((end) => (end ? toInstant(end) : []));
  return ends.length > 0 ? Math.min(...ends) : toInstant(cancelled_at ?? current_period_end);
}

type EndedSubscription = Pick<Subscription, 'end_date' | 'cancel_at' | 'cancelled_at' | 'current_period_end'>;

function isSameDate(a: string | null | undefined, b: string | null | undefined): boolean {
  return a && b ? toInstant(a) === toInstant(b) : !a && !b;
}
