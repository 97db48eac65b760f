/**
 * What an inherited subscription has of its parent: state, period, clock and end. Its own are the days on which its customer
 * joins and leaves (docs/rules/subscriptions.md, "Families").
 */
import { formatMs, type Milliseconds, toInstant } from '../time/instant.ts';
import type { Subscription } from './record.ts';

const FOLLOWED = [
  'plan_id',
  'subscription_status',
  'billing_period',
  'billing_period_count',
  'cancel_at_period_end',
] as const;
const FOLLOWED_DATES = [
  'opens_at',
  'billing_anchor',
  'current_period_start',
  'current_period_end',
  'trial_start',
  'trial_end',
  'cancel_at',
  'cancelled_at',
] as const;

/** `opens_at`: a start that lies ahead, until the opening. */
type Followed = Subscription & { readonly opens_at?: string | null };

/** Null where nothing changes: one who has left stays gone. */
export function changesOfHeir(heir: Followed, parent: Followed, now: Milliseconds): Partial<Subscription> | null {
  if (heir.subscription_status === 'cancelled') return null;
  if (isOver(heir, now)) {
    const { end_date } = heir;
    return { subscription_status: 'cancelled', cancelled_at: end_date!, cancel_at: end_date! };
  }
  const changes: Partial<Record<string, unknown>> = {};
  for (const field of FOLLOWED) if (heir[field] !== parent[field]) changes[field] = parent[field];
  for (const field of FOLLOWED_DATES) if (!isSame(heir[field], parent[field])) changes[field] = parent[field] ?? null;
  if (parent.subscription_status === 'cancelled') changes.end_date = endOf(heir, parent);
  // A draft begins with its parent.
  if (heir.subscription_status === 'draft' && toInstant(heir.start_date) < toInstant(parent.start_date))
    changes.start_date = parent.start_date;
  return Object.keys(changes).length > 0 ? (changes as Partial<Subscription>) : null;
}

function isOver({ end_date }: Subscription, now: Milliseconds): boolean {
  return Boolean(end_date) && toInstant(end_date!) <= now;
}

/** When the parent ended, and not before its own start or after its own end. */
function endOf(heir: Subscription, parent: Subscription): string {
  const ended = endedAt(parent);
  const own = heir.end_date ? toInstant(heir.end_date) : Number.POSITIVE_INFINITY;
  return formatMs(Math.max(Math.min(ended, own), toInstant(heir.start_date)));
}

/** When one that is over ended: what was to end it later never did. */
export function endedAt({ end_date, cancel_at, cancelled_at, current_period_end }: Ended): Milliseconds {
  const stated = [end_date, cancel_at].flatMap((end) => (end ? toInstant(end) : []));
  return stated.length > 0 ? Math.min(...stated) : toInstant(cancelled_at ?? current_period_end);
}

type Ended = Pick<Subscription, 'end_date' | 'cancel_at' | 'cancelled_at' | 'current_period_end'>;

function isSame(a: string | null | undefined, b: string | null | undefined): boolean {
  return a && b ? toInstant(a) === toInstant(b) : !a && !b;
}
