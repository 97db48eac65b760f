/**
 * The statuses of a subscription and the allowed changes of status (docs/rules/subscriptions.md, "States"). `cancelled` is
 * final. `await_payment` follows an unpaid invoice that opens the subscription or ends its trial. A renewal whose
 * payment fails leaves the subscription active.
 */

import { notAllowed } from '../foundation/error.ts';
import type { Subscription, SubscriptionStatus } from './record.ts';

export type SubscriptionMove = 'activate' | 'start_trial' | 'await_payment' | 'pay' | 'end_trial' | 'cancel';

const MOVES: Record<SubscriptionMove, Partial<Record<SubscriptionStatus, SubscriptionStatus>>> = {
  activate: { draft: 'active' },
  start_trial: { draft: 'trialing' },
  await_payment: { active: 'incomplete' },
  pay: { incomplete: 'active' },
  end_trial: { trialing: 'active' },
  cancel: { active: 'cancelled', trialing: 'cancelled', incomplete: 'cancelled' },
};

export function findStateAfter(move: SubscriptionMove, from: SubscriptionStatus): SubscriptionStatus | undefined {
  return MOVES[move][from];
}

export function requireStateAfter(move: SubscriptionMove, from: SubscriptionStatus): SubscriptionStatus {
  const to = findStateAfter(move, from);
  if (to === undefined)
    throw notAllowed(`a subscription that is ${from} cannot ${move.replace('_', ' ')}`, { subscription_status: from });
  return to;
}

/** Status of a draft after its activation, and of a new subscription that is not a draft. */
export function deriveStartStatus({ trial_end }: Pick<Subscription, 'trial_end'>): SubscriptionStatus {
  return requireStateAfter(trial_end ? 'start_trial' : 'activate', 'draft');
}
