/**
 * Deliveries that are due, across all tenants. Who takes one holds a lease on it while it is sent, for the sending lies outside of
 * any transaction; leases run on the clock of the database, because they guard against processes.
 */
import type { Scope } from '../../core/scope.ts';
import { ORDER_KEPT_FAILURES } from '../../core/webhook/schedule.ts';
import type { Database } from '../stores.ts';

/** Longer than a try can take. */
const LEASE_SECONDS = 60;

export type DueDelivery = Scope & {
  readonly id: string;
  readonly endpoint_id: string | null;
  readonly system_event_id: string;
  readonly event_name: string;
  readonly entity_id: string;
  readonly told_at: string;
  readonly attempt_count: number;
  readonly failure_count: number;
};

export type Wanted = {
  readonly now: Date;
  readonly lease: string;
  readonly limit: number;
  /** Of one endpoint, which may be slow, so many at a time. */
  readonly limit_each: number;
  /** Endpoints that have enough in hand. */
  readonly busy: readonly string[];
  /** Of one environment so many are in hand at most. */
  readonly limit_environment: number;
  readonly in_hand: EnvironmentCounts;
  /** Who had fewer in this run comes first. */
  readonly served: EnvironmentCounts;
  /** Without endpoints of ours deliveries are for the managed service, and with them none is. */
  readonly has_targets: boolean;
  /** Those that have not failed, in the order of the events; or those that have, the newest first. */
  readonly which: 'first' | 'again';
  readonly excluded_tenants?: readonly string[];
  readonly allowed_event_types?: readonly string[];
};

/** By `environmentKey`. */
export type EnvironmentCounts = Readonly<Record<string, number>>;

export function environmentKey({ tenant_id, environment_id }: Scope): string {
  return `${tenant_id} ${environment_id}`;
}

/**
 * Environments take turns, so that nobody waits behind all that somebody else has. One that stands behind another of its
 * record and endpoint waits for it, so that they arrive in order; not for one that fails again and again
 * (docs/rules/webhooks.md, "Order").
 */
export async function takeDue(database: Database, wanted: Wanted): Promise<DueDelivery[]> {
  const { which, allowed_event_types = [], excluded_tenants = [] } = wanted;
  const direction = which === 'first' ? 'asc' : 'desc';
  const { rows } = await database.raw(
    `with asked as (
       select due.*, coalesce((:in_hand::jsonb ->> due.key)::integer, 0) as in_hand,
              coalesce((:served::jsonb ->> due.key)::integer, 0) as served
         from (
           select distinct tenant_id, environment_id, endpoint_id, tenant_id || ' ' || environment_id as key
             from webhook_deliveries where delivery_status = 'pending' and next_attempt_at <= :now
         ) as due
         left join webhook_endpoints as endpoint on endpoint.id = due.endpoint_id
        where coalesce(due.endpoint_id, '') <> all(:busy)
          and case when due.endpoint_id is null then not :has_targets
                   else endpoint.endpoint_status = 'enabled' and endpoint.status = 'published' end
     ), chosen as (
       select chosen.id, chosen.sequence, asked.in_hand, asked.served,
              row_number() over (partition by asked.key order by chosen.sequence ${direction}) as turn
         from asked
        cross join lateral (
         select delivery.id, delivery.sequence from webhook_deliveries as delivery
          where delivery.delivery_status = 'pending' and delivery.next_attempt_at <= :now
            and delivery.tenant_id = asked.tenant_id and delivery.environment_id = asked.environment_id
            and delivery.endpoint_id is not distinct from asked.endpoint_id
            and (delivery.failure_count = 0) = :is_first
            and (delivery.leased_until is null or delivery.leased_until < now())
            and delivery.tenant_id <> all(:excluded_tenants)
            and (cardinality(:allowed_event_types::text[]) = 0 or delivery.event_name = any(:allowed_event_types))
            and not exists (
              select from webhook_deliveries as earlier
               where earlier.delivery_status = 'pending'
                 and earlier.endpoint_id is not distinct from delivery.endpoint_id
                 and earlier.entity_id = delivery.entity_id and earlier.sequence < delivery.sequence
                 and earlier.failure_count < :order_kept)
          order by delivery.sequence ${direction}
          limit :limit_each
            for update of delivery skip locked
       ) as chosen
     ), due as (
       select id from chosen where turn + in_hand <= :limit_environment
        order by turn + served, sequence ${direction} limit :limit
     ), taken as (
       update webhook_deliveries as delivery
          set lease = :lease, leased_until = now() + :lease_seconds * interval '1 second'
         from due where delivery.id = due.id
       returning delivery.*
     )
     select id, tenant_id, environment_id, endpoint_id, system_event_id, event_name, entity_id, told_at, attempt_count,
            failure_count
       from taken order by sequence ${direction}`,
    {
      now: wanted.now,
      lease: wanted.lease,
      limit: wanted.limit,
      limit_each: wanted.limit_each,
      busy: [...wanted.busy],
      limit_environment: wanted.limit_environment,
      in_hand: JSON.stringify(wanted.in_hand),
      served: JSON.stringify(wanted.served),
      has_targets: wanted.has_targets,
      is_first: which === 'first',
      excluded_tenants: [...excluded_tenants],
      allowed_event_types: [...allowed_event_types],
      order_kept: ORDER_KEPT_FAILURES,
      lease_seconds: LEASE_SECONDS,
    },
  );
  return rows;
}

export type TooOld = { readonly told_before: Date; readonly has_targets: boolean; readonly now: Date };

/**
 * Gives up what is too old to be told by itself and has failed, or waits for an endpoint that is not told anything; and what
 * was meant for a managed service that there is no more. Answers how many.
 */
export async function giveUpOld(database: Database, { told_before, has_targets, now }: TooOld): Promise<number> {
  const { rowCount } = await database.raw(
    `update webhook_deliveries as delivery
        set delivery_status = 'failed', next_attempt_at = null, updated_at = :now,
            failure_reason = case
              when failure_count > 0 then failure_reason
              when endpoint_id is null then 'the managed service that it was for is not configured any more'
              else 'it waited for too long for its endpoint, which is disabled' end
      where delivery_status = 'pending' and (leased_until is null or leased_until < now())
        and ((endpoint_id is null and :has_targets)
          or (told_at < :told_before and (failure_count > 0 or exists (
               select from webhook_endpoints as endpoint where endpoint.id = delivery.endpoint_id
                  and (endpoint.endpoint_status <> 'enabled' or endpoint.status <> 'published')))))`,
    { now, told_before, has_targets },
  );
  return rowCount as number;
}

/** How many are neither taken nor given up. */
export async function waitingDeliveries(database: Database): Promise<number> {
  const { rows } = await database.raw(
    `select count(*)::integer as count from webhook_deliveries where delivery_status = 'pending'`,
  );
  return rows[0].count;
}
