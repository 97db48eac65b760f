/**
 * The states of a subscription and the moves between them (docs/rules/subscriptions.md, "States"). `cancelled` is the end.
 * `await_payment` is that of an invoice which opens it, or which ends its trial. A renewal whose payment fails leaves it active.
 */

import { notAllowed } from '../error.ts';
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

/** The state after the move, or undefined where it is not possible. */
export function findStateAfter(move: SubscriptionMove, from: SubscriptionStatus): SubscriptionStatus | undefined {
  return MOVES[move][from];
}

/** As `stateAfter`, refusing what is not possible. */
export function requireStateAfter(move: SubscriptionMove, from: SubscriptionStatus): SubscriptionStatus {
  const to = findStateAfter(move, from);
  if (to === undefined)
    throw notAllowed(`a subscription that is ${from} cannot ${move.replace('_', ' ')}`, { subscription_status: from });
  return to;
}

/** What a draft becomes with its activation, and a subscription that never was one at its creation. */
export function deriveStartStatus({ trial_end }: Pick<Subscription, 'trial_end'>): SubscriptionStatus {
  return requireStateAfter(trial_end ? 'start_trial' : 'activate', 'draft');
}
