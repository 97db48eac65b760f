/**
 * The states of a subscription and the moves between them (docs/rules/subscriptions.md, "States"). `cancelled` is the end.
 * A renewal whose payment fails leaves the subscription active, so there is no move for it.
 */

import { notAllowed } from '../error.ts';
import type { SubscriptionStatus } from './record.ts';

export type SubscriptionMove = 'activate' | 'pay' | 'end_trial' | 'cancel';

const MOVES: Record<SubscriptionMove, Partial<Record<SubscriptionStatus, SubscriptionStatus>>> = {
  activate: { draft: 'active' },
  pay: { incomplete: 'active' },
  end_trial: { trialing: 'active' },
  cancel: { active: 'cancelled', trialing: 'cancelled', incomplete: 'cancelled' },
};

/** The state after the move, or undefined where it is not possible. */
export function stateAfter(move: SubscriptionMove, from: SubscriptionStatus): SubscriptionStatus | undefined {
  return MOVES[move][from];
}

/** As `stateAfter`, refusing what is not possible. */
export function moveOf(move: SubscriptionMove, from: SubscriptionStatus): SubscriptionStatus {
  const to = stateAfter(move, from);
  if (to === undefined)
    throw notAllowed(`a subscription that is ${from} cannot ${move.replace('_', ' ')}`, { subscription_status: from });
  return to;
}
