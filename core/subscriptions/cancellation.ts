/**
 * Plans when a cancellation takes effect and how it changes the record (docs/rules/subscriptions.md, "Cancellation"). A
 * backdated date must lie after the start of the running period, because earlier invoices are not credited here. Draft,
 * cancelled and inherited subscriptions, and those with a scheduled cancellation, are refused.
 */

import { buildStateError, invalid } from '../foundation/error.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { findStateAfter } from './moves.ts';
import type { CANCELLATION_TYPES, Subscription } from './record.ts';

export type CancellationRequest = {
  cancellation_type: (typeof CANCELLATION_TYPES)[number];
  cancel_at?: string | null;
};

export type Cancellation = {
  /** Instant at which the subscription ends or ended. */
  effective_date: string;
  /** Changes that apply to the record immediately. */
  changes: Partial<Subscription>;
};

export function planCancellation(
  subscription: Subscription,
  request: CancellationRequest,
  now: Milliseconds,
): Cancellation {
  checkCancellable(subscription);
  switch (request.cancellation_type) {
    case 'immediate':
      return planImmediateEnd(parseBackdatedCancellation(subscription, request.cancel_at, now), subscription, now);
    case 'scheduled_date':
      return planScheduledEnd(parseFutureCancellation(request.cancel_at, now), subscription, false);
    case 'end_of_period':
      if (request.cancel_at) throw invalid('cancel_at', 'belongs to scheduled_date or immediate, not to end_of_period');
      return planScheduledEnd(toInstant(subscription.current_period_end), subscription, true);
  }
}

function checkCancellable(subscription: Subscription): void {
  if (findStateAfter('cancel', subscription.subscription_status) === undefined) {
    throw buildStateError(
      'subscription_status',
      `a subscription that is ${subscription.subscription_status} cannot be cancelled`,
    );
  }
  if (subscription.subscription_type === 'INHERITED') {
    throw buildStateError('subscription_type', 'an inherited subscription is cancelled with its parent');
  }
  if (subscription.cancel_at || subscription.cancel_at_period_end) {
    throw buildStateError('cancel_at', 'a cancellation is scheduled already: undo it first');
  }
}

function parseBackdatedCancellation(
  subscription: Subscription,
  cancel_at: string | null | undefined,
  now: Milliseconds,
): number {
  if (!cancel_at) return now;
  const at = toInstant(cancel_at);
  if (at > now) throw invalid('cancel_at', 'lies in the future: use cancellation_type scheduled_date');
  if (at <= toInstant(subscription.current_period_start)) {
    throw invalid('cancel_at', 'must lie after the start of the current period', {
      current_period_start: subscription.current_period_start,
    });
  }
  return at;
}

function parseFutureCancellation(cancel_at: string | null | undefined, now: Milliseconds): number {
  if (!cancel_at) throw invalid('cancel_at', 'is required for scheduled_date');
  const at = toInstant(cancel_at);
  if (at <= now) throw invalid('cancel_at', 'must lie in the future for scheduled_date');
  return at;
}

/** Plans an immediate end. A subscription that has not begun ends at its start, without any duration. */
function planImmediateEnd(effective: Milliseconds, subscription: Subscription, now: Milliseconds): Cancellation {
  const end = Math.max(effective, toInstant(subscription.start_date));
  return {
    effective_date: formatMs(effective),
    changes: {
      subscription_status: 'cancelled',
      cancel_at: formatMs(effective),
      cancelled_at: formatMs(now),
      end_date: formatMs(end),
    },
  };
}

/**
 * Plans a scheduled end. Billing ends at `cancel_at`, also inside the running period. The period itself is not
 * shortened, so that the cancellation can be undone.
 */
function planScheduledEnd(at: Milliseconds, subscription: Subscription, cancel_at_period_end: boolean): Cancellation {
  if (subscription.end_date && at > toInstant(subscription.end_date)) {
    throw invalid('cancel_at', 'lies after the end of the subscription', { end_date: subscription.end_date });
  }
  const cancel_at = formatMs(at);
  return { effective_date: cancel_at, changes: { cancel_at, cancel_at_period_end } };
}
