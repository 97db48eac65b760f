/** Inbound events, invoices that are due to be read from a provider, and the read job of each connection. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { ProviderEventRecord } from '../../core/platform/integration/provider-event.ts';
import type { Database, Transaction } from '../foundation/stores.ts';
import { ProviderEventModel } from '../models/delivery/provider-event.ts';
import type { ConnectionModel } from '../models/foundation/connection.ts';
import { IntegrationMappingModel } from '../models/foundation/integration-mapping.ts';
import { buildConnectionJob, type JobConnection } from './connection-jobs.ts';
import { addContinuation, addJobFairly } from './fair-jobs.ts';

export const READ_TASK = 'read-provider';
const CONNECTIONS_AT_ONCE = 1_000;

export async function addReadJob(transaction: Transaction, connection: JobConnection): Promise<void> {
  await addJobFairly(transaction, buildConnectionJob(READ_TASK, connection));
}

/** Enqueues the rest of a read job. It runs after the waiting jobs of other connections. */
export async function continueReadJob(transaction: Transaction, connection: JobConnection): Promise<void> {
  await addContinuation(transaction, buildConnectionJob(READ_TASK, connection));
}

type NewProviderEvent = Pick<
  ProviderEventRecord,
  | 'id'
  | 'provider_event_id'
  | 'event_type'
  | 'occurred_at'
  | 'subjects'
  | 'event_state'
  | 'reason'
  | 'next_attempt_at'
  | 'created_at'
>;

/** Stores inbound events; repeated deliveries are ignored. Returns the number of new events. */
export async function storeProviderEvents(
  transaction: Transaction,
  { id: connection_id, provider_type, tenant_id, environment_id }: ConnectionModel,
  events: readonly NewProviderEvent[],
): Promise<number> {
  if (events.length === 0) return 0;
  const rows = events.map(({ subjects, ...event }) => ({
    ...event,
    subjects: JSON.stringify(subjects),
    updated_at: event.created_at,
    ...{ connection_id, provider_type, tenant_id, environment_id },
  }));
  const stored = await transaction('provider_events')
    .insert(rows)
    .onConflict(['tenant_id', 'environment_id', 'connection_id', 'provider_event_id'])
    .ignore()
    .returning('id');
  return stored.length;
}

type EventEnd = {
  readonly event_state: ProviderEventRecord['event_state'];
  readonly reason: string | null;
  readonly processed_at: Date | null;
  readonly attempt_count?: number;
  readonly next_attempt_at?: Date | null;
};

/** Marks a received event as processed, or postpones it. False if another job has processed it meanwhile. */
export async function endEvent(
  database: Database,
  { id, tenant_id, environment_id }: ProviderEventModel,
  changes: EventEnd,
): Promise<boolean> {
  const count = await database('provider_events')
    .where({ id, tenant_id, environment_id, event_state: 'received' })
    .update({ next_attempt_at: null, ...changes, updated_at: database.raw('now()') });
  return count === 1;
}

type DueReadQuery = { readonly connection_id: string; readonly now: Date };

export async function findDueEvent(
  database: Database,
  scope: Scope,
  { connection_id, now }: DueReadQuery,
): Promise<ProviderEventModel | undefined> {
  const [first] = await ProviderEventModel.in(scope, database)
    .where({ connection_id })
    .where('next_attempt_at', '<=', now)
    .orderBy(['next_attempt_at', 'id'])
    .limit(1);
  return first;
}

/** Finds the mapping whose record is due to be read from the provider. */
export async function findDuePull(
  database: Database,
  scope: Scope,
  { connection_id, now }: DueReadQuery,
): Promise<IntegrationMappingModel | undefined> {
  const [first] = await IntegrationMappingModel.in(scope, database)
    .where({ connection_id, mapping_state: 'made' })
    .where('next_pull_at', '<=', now)
    .orderBy(['next_pull_at', 'id'])
    .limit(1);
  return first;
}

/** Sets the next pull, unless another process set it after the mapping was read. */
export async function setNextPull(
  database: Database,
  { id, tenant_id, environment_id, next_pull_at: seen }: IntegrationMappingModel,
  next_pull_at: Date | null,
): Promise<void> {
  await database('integration_mappings')
    .where({ id, tenant_id, environment_id, mapping_state: 'made' })
    .whereRaw('next_pull_at is not distinct from ?', [seen])
    .update({ next_pull_at });
}

/**
 * Lists the connections of all tenants for which something is due to be read, the longest waiting first. Stopped and
 * paused connections are excluded, and environments with a test clock, which never call a provider.
 */
export async function listConnectionsToRead(database: Database, now: Date): Promise<JobConnection[]> {
  const ofConnection =
    'due.tenant_id = c.tenant_id and due.environment_id = c.environment_id and due.connection_id = c.id';
  const { rows } = await database.raw(
    `select c.id, c.tenant_id, c.environment_id from connections as c
      cross join lateral (
        select least((select min(due.next_attempt_at) from provider_events as due where ${ofConnection}),
                     (select min(due.next_pull_at) from integration_mappings as due
                       where ${ofConnection} and due.mapping_state = 'made')) as due_at) as work
      where c.has_account and c.status = 'published' and c.connection_state = 'active'
        and (c.paused_until is null or c.paused_until <= :now)
        and not exists (select from test_clocks as k where k.tenant_id = c.tenant_id and k.environment_id = c.environment_id)
        and work.due_at <= :now
      order by work.due_at, c.id limit ${CONNECTIONS_AT_ONCE}`,
    { now },
  );
  return rows;
}

/** Deletes processed events that are older than the given time. Returns their number. */
export async function purgeProviderEvents(database: Database, before: Date): Promise<number> {
  const { rowCount } = await database.raw(
    'delete from provider_events where created_at < ? and next_attempt_at is null',
    [before],
  );
  return rowCount;
}

type ProviderEventCounts = {
  readonly waiting: number;
  /** Age of the longest waiting event, in seconds. Events of a connection that needs attention do not count. */
  readonly oldest_seconds: number;
  readonly failed: number;
};

/** Counts the inbound events of all tenants, for the metrics. */
export async function countProviderEvents(database: Database): Promise<ProviderEventCounts> {
  const { rows } = await database.raw(
    `with active as (
       select c.id from connections as c
        where c.has_account and c.status = 'published' and c.connection_state = 'active'
          and not exists (select from test_clocks as k where k.tenant_id = c.tenant_id and k.environment_id = c.environment_id)
     )
     select count(*)::integer as waiting,
            coalesce(extract(epoch from now() - min(event.created_at) filter (where active.id is not null)), 0)::double precision
              as oldest_seconds,
            (select count(*)::integer from provider_events where event_state = 'failed') as failed
       from provider_events as event left join active on active.id = event.connection_id
      where event.next_attempt_at is not null`,
  );
  return rows[0];
}
