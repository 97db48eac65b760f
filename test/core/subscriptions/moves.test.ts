import { expect } from 'chai';
import { findStateAfter, requireStateAfter, type SubscriptionMove } from '../../../core/subscriptions/moves.ts';
import { SUBSCRIPTION_STATUSES } from '../../../core/subscriptions/record.ts';

describe('moves of a subscription', () => {
  // Columns as in SUBSCRIPTION_STATUSES: active, trialing, incomplete, draft, cancelled, paused.
  const table: [SubscriptionMove, (string | undefined)[]][] = [
    ['activate', [undefined, undefined, undefined, 'active', undefined, undefined]],
    ['start_trial', [undefined, undefined, undefined, 'trialing', undefined, undefined]],
    ['await_payment', ['incomplete', undefined, undefined, undefined, undefined, undefined]],
    ['pay', [undefined, undefined, 'active', undefined, undefined, undefined]],
    ['end_trial', [undefined, 'active', undefined, undefined, undefined, undefined]],
    ['cancel', ['cancelled', 'cancelled', 'cancelled', undefined, undefined, undefined]],
  ];
  for (const [move, states] of table) {
    it(move, () => {
      expect(SUBSCRIPTION_STATUSES.map((from) => findStateAfter(move, from))).to.deep.equal(states);
    });
  }

  it('refuses what is not possible, naming the state', () => {
    expect(() => requireStateAfter('activate', 'cancelled')).to.throw(/cancelled cannot activate/);
  });
});
