import type { Scope } from '../../../core/foundation/scope.ts';
import { Subscription } from '../../../core/subscriptions/record.ts';
import { joinBatch } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import { narrow, type PageQuery } from '../foundation/page.ts';
import { toBatchKey } from '../foundation/statements.ts';

export interface SubscriptionModel extends Subscription {}

export class SubscriptionModel extends ScopedModel {
  static override tableName = 'subscriptions';
  static override recordName = 'subscription';
  static override record = Subscription;
  /** Future start of the subscription or its trial, at which the scheduler opens it; null after the opening, and for drafts. */
  declare opens_at: string | null;
  /** Earlier periods of a subscription whose periods were restarted, oldest first; null if they never were. */
  declare earlier_periods: EarlierPeriods[] | null;
  static override get jsonAttributes() {
    return [...super.jsonAttributes, 'earlier_periods'];
  }

  /** Subscriptions whose current charges the customer may pay: its own, and those of others that are invoiced to it. */
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
  /** Start of the periods that replaced the earlier ones. */
  readonly until: string;
};

/** Narrows a query to subscriptions that had begun and not ended at `at`; without `at` the query is unchanged. */
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

/**
 * Narrows a query to subscriptions whose period end, scheduled cancellation or end is at or before an instant; without an instant the query
 * is unchanged.
 */
export function narrowToChangingBy(
  query: PageQuery<SubscriptionModel>,
  at: string | null | undefined,
): PageQuery<SubscriptionModel> {
  return at ? query.whereRaw('least(current_period_end, cancel_at, end_date) <= ?', [at]) : query;
}

/** Subscriptions of a plan that are not cancelled and lack its prices up to this sequence, in the order of ids, after `after`. */
export function narrowToUnsyncedAfter(
  query: PageQuery<SubscriptionModel>,
  { plan_id, sequence, after }: { plan_id: string; sequence: number; after: string },
): PageQuery<SubscriptionModel> {
  return (
    query
      .where({ plan_id, status: 'published' })
      .whereNot('subscription_status', 'cancelled')
      // Inherited subscriptions have no line items of their own.
      .whereNot('subscription_type', 'INHERITED')
      .whereRaw('coalesce(synced_price_sequence, 0) < ?', [sequence])
      .where('id', '>', after)
      .orderBy('id')
  );
}

/** All children of one type that have, or had, these parents, in the order of their creation. */
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
