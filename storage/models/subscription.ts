/** Table `subscriptions`. */
import { Subscription } from '../../core/subscription/record.ts';
import { ScopedModel } from './model.ts';
import { narrow, type Query } from './page.ts';

export interface SubscriptionModel extends Subscription {}

export class SubscriptionModel extends ScopedModel {
  static override tableName = 'subscriptions';
  static override recordName = 'subscription';
  static override record = Subscription;
}

/** Those that had begun and were not over at this instant; all of them without one. */
export function activeAt(query: Query<SubscriptionModel>, at: string | null | undefined): Query<SubscriptionModel> {
  if (!at) return query;
  return narrow(query, [
    ['start_date', '<=', at],
    ['subscription_status', '<>', 'draft'],
    ['end_date', 'open at', at],
  ]).whereRaw('(cancelled_at is null or cancel_at > ?)', [at]);
}

/** Those whose period, scheduled cancellation or end comes by this instant; all of them without one. */
export function changingBy(query: Query<SubscriptionModel>, at: string | null | undefined): Query<SubscriptionModel> {
  return at ? query.whereRaw('least(current_period_end, cancel_at, end_date) <= ?', [at]) : query;
}
