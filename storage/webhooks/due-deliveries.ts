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
  /** Those that have not failed, in the order of the events; or those that have, the newest first. */
  readonly which: 'first' | 'again';
  readonly excluded_tenants?: readonly string[];
  readonly allowed_event_types?: readonly string[];
};

/**
 * One that stands behind another of its record and endpoint waits for it, so that they arrive in order; not for one that fails
 * again and again (docs/rules/webhooks.md, "Order").
 */
export async function takeDue(database: Database, wanted: Wanted): Promise<DueDelivery[]> {
  const { which, allowed_event_types = [], excluded_tenants = [] } = wanted;
  const { rows } = await database.raw(
    `with due as (
       select chosen.id from (
         select distinct endpoint_id from webhook_deliveries
          where delivery_status = 'pending' and next_attempt_at <= :now
       ) as asked
       left join webhook_endpoints as endpoint on endpoint.id = asked.endpoint_id
       cross join lateral (
         select delivery.id, delivery.sequence from webhook_deliveries as delivery
          where delivery.delivery_status = 'pending' and delivery.next_attempt_at <= :now
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
          order by delivery.sequence ${which === 'first' ? 'asc' : 'desc'}
          limit :limit_each
            for update of delivery skip locked
       ) as chosen
       where coalesce(asked.endpoint_id, '') <> all(:busy)
         and (asked.endpoint_id is null or (endpoint.endpoint_status = 'enabled' and endpoint.status = 'published'))
       order by chosen.sequence ${which === 'first' ? 'asc' : 'desc'}
       limit :limit
     ), taken as (
       update webhook_deliveries as delivery
          set lease = :lease, leased_until = now() + :lease_seconds * interval '1 second'
         from due where delivery.id = due.id
       returning delivery.*
     )
     select id, tenant_id, environment_id, endpoint_id, system_event_id, event_name, entity_id, told_at, attempt_count,
            failure_count
       from taken order by sequence ${which === 'first' ? 'asc' : 'desc'}`,
    {
      now: wanted.now,
      lease: wanted.lease,
      limit: wanted.limit,
      limit_each: wanted.limit_each,
      busy: [...wanted.busy],
      is_first: which === 'first',
      excluded_tenants: [...excluded_tenants],
      allowed_event_types: [...allowed_event_types],
      order_kept: ORDER_KEPT_FAILURES,
      lease_seconds: LEASE_SECONDS,
    },
  );
  return rows;
}

/** Gives up what has failed and is too old to be told again by itself. Answers how many. */
export async function giveUpOld(database: Database, { told_before, now }: { told_before: Date; now: Date }) {
  const { rowCount } = await database.raw(
    `update webhook_deliveries
        set delivery_status = 'failed', next_attempt_at = null, updated_at = ?
      where delivery_status = 'pending' and failure_count > 0 and told_at < ?
        and (leased_until is null or leased_until < now())`,
    [now, told_before],
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
