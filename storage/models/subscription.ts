/** Table `subscriptions`. */
import type { Scope } from '../../core/scope.ts';
import { Subscription } from '../../core/subscription/record.ts';
import type { Database } from '../stores.ts';
import { joinBatch } from './batched.ts';
import { ScopedModel } from './model.ts';
import { narrow, type PageQuery } from './page.ts';
import { toBatchKey } from './statements.ts';

export interface SubscriptionModel extends Subscription {}

export class SubscriptionModel extends ScopedModel {
  static override tableName = 'subscriptions';
  static override recordName = 'subscription';
  static override record = Subscription;
  /** When the scheduler opens it; null once it is open, and of a draft. */
  declare opens_at: string | null;
  /** In which periods it was before they began anew, the oldest first; null where they never did. */
  declare earlier_periods: EarlierPeriods[] | null;
  static override get jsonAttributes() {
    return [...super.jsonAttributes, 'earlier_periods'];
  }

  /** Those whose running charge the customer may have to pay: its own, and of whom it pays for. */
  static chargedTo(
    { tenant_id, environment_id }: Scope,
    { customer_id, currency }: Pick<SubscriptionModel, 'customer_id' | 'currency'>,
    database: Database,
  ): Promise<SubscriptionModel[]> {
    const key = toBatchKey('charged to', this, tenant_id, environment_id, currency);
    return joinBatch(database, { key, query: customer_id }, async (customer_ids) => {
      const found = await SubscriptionModel.in({ tenant_id, environment_id }, database)
        .where({ currency, status: 'published' })
        .whereIn('subscription_status', ['active', 'trialing', 'incomplete'])
        .where(
          (either) =>
            void either.whereIn('customer_id', [...customer_ids]).orWhereIn('invoicing_customer_id', [...customer_ids]),
        );
      return customer_ids.map((id) =>
        found.filter(({ customer_id, invoicing_customer_id }) => customer_id === id || invoicing_customer_id === id),
      );
    });
  }
}

export type EarlierPeriods = Pick<Subscription, 'billing_anchor' | 'billing_period' | 'billing_period_count'> & {
  /** Where others began. */
  readonly until: string;
};

/** Those that had begun and were not over at this instant; all of them without one. */
export function narrowToActiveAt(
  query: PageQuery<SubscriptionModel>,
  at: string | null | undefined,
): PageQuery<SubscriptionModel> {
  if (!at) return query;
  return narrow(query, [
    ['start_date', '<=', at],
    ['subscription_status', '<>', 'draft'],
    ['end_date', 'open at', at],
  ]).whereRaw('(cancelled_at is null or cancel_at > ?)', [at]);
}

/** Those whose period, scheduled cancellation or end comes by this instant; all of them without one. */
export function narrowToChangingBy(
  query: PageQuery<SubscriptionModel>,
  at: string | null | undefined,
): PageQuery<SubscriptionModel> {
  return at ? query.whereRaw('least(current_period_end, cancel_at, end_date) <= ?', [at]) : query;
}

/** Those of a plan that live and do not know its prices up to this sequence, behind an id and in the order of ids. */
export function narrowToUnsyncedAfter(
  query: PageQuery<SubscriptionModel>,
  { plan_id, sequence, after }: { plan_id: string; sequence: number; after: string },
): PageQuery<SubscriptionModel> {
  return (
    query
      .where({ plan_id, status: 'published' })
      .whereNot('subscription_status', 'cancelled')
      // These have no line items of their own.
      .whereNot('subscription_type', 'INHERITED')
      .whereRaw('coalesce(synced_price_sequence, 0) < ?', [sequence])
      .where('id', '>', after)
      .orderBy('id')
  );
}

/** All of one type that have, or had, these parents, in the order of their making. */
export function buildChildrenQuery(
  scope: Scope,
  { parents, type }: { parents: readonly { id: string }[]; type: 'INHERITED' | 'grouped_invoicing' },
  database: Database,
): PageQuery<SubscriptionModel> {
  const ids = parents.map(({ id }) => id);
  return SubscriptionModel.in(scope, database)
    .whereIn('parent_subscription_id', ids)
    .where({ subscription_type: type, status: 'published' })
    .orderBy('id');
}
