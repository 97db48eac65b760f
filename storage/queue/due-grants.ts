/** Applications of credit grants that are due or upcoming. An application adds the credits of one period. */
import { OPEN_APPLICATIONS } from '../../core/credits/grants/application.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';
import { CreditGrantApplicationModel } from '../models/credits/credit-grant-application.ts';
import { SubscriptionModel } from '../models/subscriptions/subscription.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';

// The statuses are literals, because the planner matches the partial indexes only with the same text.
const OPEN = `application_status in (${OPEN_APPLICATIONS.map((word) => `'${word}'`).join(', ')})`;

/**
 * SQL condition that the state of the subscription at the start of the application's period is known. It is unknown
 * while the subscription is due to begin, end or change its plan before then: billing performs that change first, and
 * may wait for usage. Applications of a subscription that is neither active nor trialing do not wait. Grants of the
 * subscription itself do not wait for a plan change, which may fail for a long time.
 */
const DECIDED = `exists (select from subscriptions s
   where s.id = credit_grant_applications.subscription_id and s.tenant_id = credit_grant_applications.tenant_id
     and s.environment_id = credit_grant_applications.environment_id
     and (s.subscription_status not in ('active', 'trialing')
          or not (s.opens_at is not null
                  or coalesce(s.cancel_at <= credit_grant_applications.period_start, false)
                  or (s.subscription_status = 'trialing' and s.current_period_end <= credit_grant_applications.period_start)
                  or (exists (select from subscription_schedules x
                               where x.subscription_id = s.id and x.tenant_id = s.tenant_id and x.environment_id = s.environment_id
                                 and x.status = 'pending' and x.scheduled_at <= credit_grant_applications.period_start)
                      and exists (select from credit_grants g
                                   where g.id = credit_grant_applications.credit_grant_id and g.tenant_id = s.tenant_id
                                     and g.environment_id = s.environment_id and g.scope <> 'SUBSCRIPTION')))))`;

/** Lists the next applications, the longest waiting first. */
export async function listDueGrants(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = database('credit_grant_applications').whereRaw(OPEN).where('scheduled_for', '<=', now).whereRaw(DECIDED);
  return listRoundRobin(database, narrowToEnvironments(due, 'credit_grant_applications', filter), {
    by: ['scheduled_for'],
    ...filter,
  });
}

/** Locks and returns the next due application of a subscription whose row this transaction has locked. */
export async function lockDueGrant(
  transaction: Database,
  scope: Scope,
  { subscription_id, now }: { subscription_id: string; now: Date },
): Promise<CreditGrantApplicationModel | undefined> {
  const [due] = await CreditGrantApplicationModel.open(scope, transaction)
    .where('subscription_id', subscription_id)
    .where('scheduled_for', '<=', now.toISOString())
    .whereRaw(DECIDED)
    .orderBy(['scheduled_for', 'id'])
    .limit(1)
    .forUpdate();
  return due;
}

/** Finds the earliest instant at which an application of this environment is due. */
export function nextGrantDue(database: Database, scope: Scope): Instant {
  return buildEarliestQuery(database, scope, {
    of: () => database('credit_grant_applications').whereRaw(OPEN),
    columns: ['scheduled_for'],
  });
}

/**
 * SQL condition of an application that is skipped: its grant belongs to a plan that the subscription leaves at the
 * start of the period or earlier.
 */
const IS_GRANTED_BY_ENDING_PLAN = `exists (select from credit_grants g join subscription_schedules x
     on x.tenant_id = g.tenant_id and x.environment_id = g.environment_id
   where g.id = credit_grant_applications.credit_grant_id and g.tenant_id = credit_grant_applications.tenant_id
     and g.environment_id = credit_grant_applications.environment_id and g.scope = 'PLAN'
     and x.subscription_id = credit_grant_applications.subscription_id and x.status = 'pending' and x.schedule_type = 'plan_change'
     and x.configuration ->> 'target_plan_id' <> g.plan_id
     and x.scheduled_at <= credit_grant_applications.period_start)`;

/**
 * Builds a query for the upcoming applications of the subscription, or of the customer's subscriptions, before it ends or changes its plan;
 * earliest first.
 */
export function buildUpcomingGrantsQuery(
  scope: Scope,
  of: { readonly subscription_id: string } | { readonly customer_id: string },
  database: Database,
) {
  const living = SubscriptionModel.in(scope, database)
    .where('subscriptions.status', 'published')
    .whereRaw('subscriptions.id = credit_grant_applications.subscription_id')
    .whereRaw('(cancel_at is null or credit_grant_applications.period_start < cancel_at)')
    .where('subscription_id' in of ? { 'subscriptions.id': of.subscription_id } : { customer_id: of.customer_id })
    .select('subscriptions.id');
  return CreditGrantApplicationModel.open(scope, database)
    .whereExists(living as never)
    .whereRaw(`not ${IS_GRANTED_BY_ENDING_PLAN}`)
    .orderBy(['scheduled_for', 'id']);
}
