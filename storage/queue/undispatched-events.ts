/**
 * System events of all tenants without deliveries, and the endpoints that subscribe to them: the input of the job that
 * creates deliveries. The events stay locked until the transaction ends.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Transaction } from '../foundation/stores.ts';
import type { SystemEventModel } from '../models/foundation/system-event.ts';

export type UndispatchedEvent = Scope &
  Pick<SystemEventModel, 'id' | 'event_name' | 'entity_type' | 'entity_id' | 'created_at'> & {
    sequence: string;
    /**
     * Whether the environment has a test clock. The instants of its events are simulated, so they do not show the real
     * wait.
     */
    has_clock?: boolean;
  };

/**
 * Lists the next environments with undispatched events, in the order of ids. The index is walked from one environment to the next, so each
 * costs one step, for any number of events.
 */
export async function listWaitingEnvironments(
  transaction: Transaction,
  { after, limit }: { after: Scope | null; limit: number },
): Promise<Scope[]> {
  const nextAfter = (scope: string) =>
    `select tenant_id, environment_id from system_events
      where dispatched_at is null and (tenant_id, environment_id) > (${scope})
      order by tenant_id, environment_id limit 1`;
  const { rows } = await transaction.raw(
    `with recursive line as (
       (${nextAfter(':tenant_id, :environment_id')})
       union all
       select next.* from line cross join lateral (${nextAfter('line.tenant_id, line.environment_id')}) as next
     )
     select * from line limit :limit`,
    { tenant_id: after?.tenant_id ?? '', environment_id: after?.environment_id ?? '', limit },
  );
  return rows;
}

type EnvironmentShare = Scope & { readonly limit: number };

/**
 * Locks and returns events in the order in which they happened. If another transaction has locked an event, this call
 * skips it and later events of its record. Each call also reads the events that others have locked, so it cannot take an event
 * before an earlier one of the same record.
 */
export async function takeUndispatched(
  transaction: Transaction,
  shares: readonly EnvironmentShare[],
): Promise<UndispatchedEvent[]> {
  const { rows } = await transaction.raw(
    `with share as (
       select * from jsonb_to_recordset(:shares) as share(tenant_id text, environment_id text, "limit" integer)
     ), oldest as materialized (
       select event.* from share cross join lateral (
         select id, sequence, tenant_id, environment_id, event_name, entity_type, entity_id, created_at from system_events
          where tenant_id = share.tenant_id and environment_id = share.environment_id and dispatched_at is null
          order by sequence limit share.limit
       ) as event
     ), taken as (
       select id from system_events where id in (select id from oldest) and dispatched_at is null for update skip locked
     )
     select oldest.*, taken.id is not null as is_taken,
            exists (select from test_clocks as clock where clock.tenant_id = oldest.tenant_id
                       and clock.environment_id = oldest.environment_id) as has_clock
       from oldest left join taken on taken.id = oldest.id order by sequence`,
    { shares: JSON.stringify(shares) },
  );
  return takenInOrder(rows);
}

function takenInOrder(events: readonly (UndispatchedEvent & { is_taken: boolean })[]): UndispatchedEvent[] {
  const left = new Set<string>();
  return events.filter(({ is_taken, tenant_id, environment_id, entity_id }) => {
    const record = `${tenant_id} ${environment_id} ${entity_id}`;
    if (!is_taken) left.add(record);
    return !left.has(record);
  });
}

/** Whether the environment has events that wait for the job. */
export async function hasUndispatched(
  transaction: Transaction,
  { tenant_id, environment_id }: Scope,
): Promise<boolean> {
  const [event] = await transaction('system_events')
    .where({ tenant_id, environment_id })
    .whereNull('dispatched_at')
    .select('id')
    .limit(1);
  return event !== undefined;
}

export async function markDispatched(transaction: Transaction, ids: readonly string[], now: Date): Promise<void> {
  await transaction('system_events')
    .whereRaw('id = any(?)', [[...ids]])
    .update({ dispatched_at: now });
}

export type ListeningEndpoint = Scope & { readonly id: string; readonly event_names: readonly string[] };

/** Lists the enabled endpoints of these environments, and locks them against deletion and disabling until the transaction ends. */
export async function listListeningEndpoints(
  transaction: Transaction,
  scopes: readonly Scope[],
): Promise<ListeningEndpoint[]> {
  return transaction('webhook_endpoints')
    .whereRaw('tenant_id = any(?)', [scopes.map(({ tenant_id }) => tenant_id)])
    .whereRaw('environment_id = any(?)', [scopes.map(({ environment_id }) => environment_id)])
    .where({ status: 'published', endpoint_status: 'enabled' })
    .orderBy('id')
    .forShare()
    .select('id', 'tenant_id', 'environment_id', 'event_names');
}
