/**
 * Due deliveries across all tenants. A delivery is leased while it is sent, because sending happens outside any transaction. Leases
 * use the clock of the database, because they guard against other processes.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import { ORDERED_FAILURES_MAX } from '../../core/platform/webhook/schedule.ts';
import type { Database } from '../foundation/stores.ts';
import { IN_NO_ANSWER } from '../postgres/interceptors/own-writes.ts';

/** Duration of a lease: longer than an attempt can take. */
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

export type DueDeliveriesQuery = {
  readonly now: Date;
  readonly lease: string;
  readonly limit: number;
  /**
   * Maximum concurrent deliveries per endpoint, per environment and per tenant, so that slow receivers do not take all
   * slots.
   */
  readonly limit_each: number;
  readonly limit_environment: number;
  readonly limit_tenant: number;
  readonly in_hand: DeliveryCounts;
  /** Number of deliveries that each tenant, environment and endpoint had in this run; tenants with fewer come first. */
  readonly served: DeliveryCounts;
  /**
   * True if this service stores the endpoints: deliveries for a managed service are then excluded. If false, only
   * deliveries for a managed service are included.
   */
  readonly has_targets: boolean;
  /**
   * Which deliveries are taken: `first` are those that have not failed, in the order of the events; `again` are failed
   * ones, newest first.
   */
  readonly which: 'first' | 'again';
  readonly excluded_tenants?: readonly string[];
  readonly allowed_event_types?: readonly string[];
};

/** Number of deliveries by the keys of `listDeliveryKeys`. */
export type DeliveryCounts = Readonly<Record<string, number>>;

export function toEnvironmentKey({ tenant_id, environment_id }: Scope): string {
  return `${tenant_id} ${environment_id}`;
}

/** Lists the keys of the counters of a delivery: tenant, environment, and endpoint. */
export function listDeliveryKeys({ tenant_id, environment_id, endpoint_id }: DueDelivery): string[] {
  const endpoint = endpoint_id === null ? [] : [endpoint_id];
  return [tenant_id, toEnvironmentKey({ tenant_id, environment_id }), ...endpoint];
}

/**
 * Takes due deliveries. Tenants alternate, and within a tenant its environments, so that none waits for all deliveries of another. A
 * delivery waits for earlier ones of its record and endpoint, so that they arrive in order. It does not wait for one that fails repeatedly
 * (docs/rules/webhooks.md, "Order"). The query walks an index from one endpoint to the next and reads at most the allowed number of each.
 * So its cost is independent of the backlog. A first attempt is due at once, whatever the instant of the run.
 */
export async function takeDue(database: Database, wanted: DueDeliveriesQuery): Promise<DueDelivery[]> {
  const { which, allowed_event_types = [], excluded_tenants = [] } = wanted;
  const direction = which === 'first' ? 'asc' : 'desc';
  // This text must equal the condition of the partial indexes, so that Postgres uses them.
  const isOne = `delivery_status = 'pending' and ${which === 'first' ? 'failure_count = 0' : 'failure_count > 0'}`;
  const isDue = which === 'first' ? isOne : `${isOne} and next_attempt_at <= :now`;
  const nextAfter = (place: string) =>
    `select tenant_id, environment_id, coalesce(endpoint_id, '') as endpoint from webhook_deliveries
      where ${isOne} and (tenant_id, environment_id, coalesce(endpoint_id, '')) > (${place})
      order by tenant_id, environment_id, coalesce(endpoint_id, '') limit 1`;
  const { rows } = await database.raw(
    `with recursive line as (
       (${nextAfter(`'', '', ''`)})
       union all
       select next.* from line
        cross join lateral (${nextAfter('line.tenant_id, line.environment_id, line.endpoint')}) as next
     ), counted as (
       select line.*, coalesce((:in_hand::jsonb ->> line.endpoint)::integer, 0) as of_endpoint,
              coalesce((:in_hand::jsonb ->> (line.tenant_id || ' ' || line.environment_id))::integer, 0) as of_environment,
              coalesce((:in_hand::jsonb ->> line.tenant_id)::integer, 0) as of_tenant
         from line left join webhook_endpoints as target on target.id = line.endpoint
        where line.tenant_id <> all(:excluded_tenants)
          and case when line.endpoint = '' then not :has_targets
                   else target.endpoint_status = 'enabled' and target.status = 'published' end
     ), asked as (
       select *, least(:limit_each - of_endpoint, :limit_environment - of_environment) as room from counted
        where of_endpoint < :limit_each and of_environment < :limit_environment and of_tenant < :limit_tenant
     ), chosen as (
       select chosen.id, chosen.sequence, asked.tenant_id, asked.environment_id, asked.of_environment, asked.of_tenant,
              row_number() over (partition by asked.tenant_id, asked.environment_id order by chosen.sequence ${direction}) as turn
         from asked
        cross join lateral (
         select delivery.id, delivery.sequence from webhook_deliveries as delivery
          where ${isDue}
            and delivery.tenant_id = asked.tenant_id and delivery.environment_id = asked.environment_id
            and coalesce(delivery.endpoint_id, '') = asked.endpoint
            and (delivery.leased_until is null or delivery.leased_until < now())
            and (cardinality(:allowed_event_types::text[]) = 0 or delivery.event_name = any(:allowed_event_types))
            and not exists (
              select from webhook_deliveries as earlier
               where earlier.delivery_status = 'pending'
                 and coalesce(earlier.endpoint_id, '') = coalesce(delivery.endpoint_id, '')
                 and earlier.entity_id = delivery.entity_id and earlier.sequence < delivery.sequence
                 and earlier.failure_count < :ordered_failures_max)
          order by delivery.sequence ${direction}
          limit asked.room
       ) as chosen
     ), in_turn as (
       select id, sequence, tenant_id, of_tenant,
              row_number() over (
                partition by tenant_id
                order by turn + coalesce((:served::jsonb ->> (tenant_id || ' ' || environment_id))::integer, 0),
                         sequence ${direction}) as turn
         from chosen where turn + of_environment <= :limit_environment
     ), due as (
       select id from in_turn where turn + of_tenant <= :limit_tenant
        order by turn + coalesce((:served::jsonb ->> tenant_id)::integer, 0), sequence ${direction} limit :limit
     ), free as (
       -- Whoever looks at the same moment has found the same ones: the row decides who has it.
       select id from webhook_deliveries as delivery
        where id = any(array(select id from due)) and delivery_status = 'pending'
          and (delivery.leased_until is null or delivery.leased_until < now())
          for update skip locked
     ), taken as (
       update webhook_deliveries as delivery
          set lease = :lease, leased_until = now() + :lease_seconds * interval '1 second'
         from free where delivery.id = free.id
       returning delivery.*
     )
     select id, tenant_id, environment_id, endpoint_id, system_event_id, event_name, entity_id, told_at, attempt_count,
            failure_count
       from taken order by sequence ${direction} ${IN_NO_ANSWER}`,
    {
      ...(which === 'again' ? { now: wanted.now } : {}),
      lease: wanted.lease,
      limit: wanted.limit,
      limit_each: wanted.limit_each,
      limit_environment: wanted.limit_environment,
      limit_tenant: wanted.limit_tenant,
      in_hand: JSON.stringify(wanted.in_hand),
      served: JSON.stringify(wanted.served),
      has_targets: wanted.has_targets,
      excluded_tenants: [...excluded_tenants],
      allowed_event_types: [...allowed_event_types],
      ordered_failures_max: ORDERED_FAILURES_MAX,
      lease_seconds: LEASE_SECONDS,
    },
  );
  return rows;
}

type TooOld = { readonly emitted_before: Date; readonly has_targets: boolean; readonly now: Date };

/**
 * Fails deliveries that are too old for automatic retries and have failed, or whose endpoint is disabled. Also fails deliveries for
 * a managed service that is no longer configured. Returns their number.
 */
export async function giveUpOld(database: Database, { emitted_before, has_targets, now }: TooOld): Promise<number> {
  const { rowCount } = await database.raw(
    `update webhook_deliveries as delivery
        set delivery_status = 'failed', next_attempt_at = null, updated_at = :now,
            failure_reason = case
              when failure_count > 0 then failure_reason
              when endpoint_id is null then 'the managed service that it was for is not configured any more'
              else 'it waited for too long for its endpoint, which is disabled' end
      where delivery_status = 'pending' and (leased_until is null or leased_until < now())
        and ((endpoint_id is null and :has_targets)
          or (told_at < :emitted_before and (failure_count > 0 or exists (
               select from webhook_endpoints as endpoint where endpoint.id = delivery.endpoint_id
                  and (endpoint.endpoint_status <> 'enabled' or endpoint.status <> 'published')))))`,
    { now, emitted_before, has_targets },
  );
  return rowCount as number;
}

/** Counts the deliveries that have neither succeeded nor failed for good. */
export async function countWaitingDeliveries(database: Database): Promise<number> {
  const { rows } = await database.raw(
    `select count(*)::integer as count from webhook_deliveries where delivery_status = 'pending'`,
  );
  return rows[0].count;
}
