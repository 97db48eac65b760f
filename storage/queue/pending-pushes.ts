/** Mappings whose records wait to be pushed, and the push job of each connection. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { IntegrationMapping } from '../../core/platform/integration/mapping.ts';
import type { Database, Transaction } from '../foundation/stores.ts';
import { IntegrationMappingModel } from '../models/foundation/integration-mapping.ts';
import { buildConnectionJob, type JobConnection } from './connection-jobs.ts';
import { toEnvironmentKey } from './due-deliveries.ts';
import { addContinuation, addDelayedJob, addJobFairly } from './fair-jobs.ts';

export const PUSH_TASK = 'push-records';

export async function addPushJob(transaction: Transaction, connection: JobConnection): Promise<void> {
  await addJobFairly(transaction, buildConnectionJob(PUSH_TASK, connection));
}

/** Enqueues the rest of a push job. It runs after the waiting jobs of other connections. */
export async function continuePushJob(transaction: Transaction, connection: JobConnection): Promise<void> {
  await addContinuation(transaction, buildConnectionJob(PUSH_TASK, connection));
}

export async function delayPushJob(
  transaction: Transaction,
  connection: JobConnection,
  delay_ms: number,
): Promise<void> {
  await addDelayedJob(transaction, buildConnectionJob(PUSH_TASK, connection), delay_ms);
}

/** Returns the keys (`toEnvironmentKey`) of the environments that have a connection with a provider account. */
export async function listConnectedEnvironments(
  transaction: Transaction,
  scopes: readonly Scope[],
): Promise<ReadonlySet<string>> {
  const connected: Scope[] = await transaction('connections')
    .whereRaw('tenant_id = any(?)', [scopes.map(({ tenant_id }) => tenant_id)])
    .whereRaw('environment_id = any(?)', [scopes.map(({ environment_id }) => environment_id)])
    .where({ has_account: true, status: 'published' })
    .distinct('tenant_id', 'environment_id');
  return new Set(connected.map(toEnvironmentKey));
}

type PendingRecords = {
  readonly connection_id: string;
  readonly entity_type: IntegrationMapping['entity_type'];
  readonly entity_ids: readonly string[];
};

/**
 * Marks the mappings of these records as pending, and returns the ids of the records that have one. Each mark has its
 * own instant, so a record that is marked during its push stays pending.
 */
export async function markPending(
  transaction: Transaction,
  scope: Scope,
  { connection_id, entity_type, entity_ids }: PendingRecords,
): Promise<ReadonlySet<string>> {
  const { tenant_id, environment_id } = scope;
  const marked: { entity_id: string }[] = await transaction('integration_mappings')
    .where({ tenant_id, environment_id, connection_id, entity_type })
    .whereNot('mapping_state', 'gone')
    .whereRaw('entity_id = any(?)', [[...entity_ids]])
    .update({ pending_since: transaction.raw('clock_timestamp()'), push_error: null }, ['entity_id']);
  return new Set(marked.map(({ entity_id }) => entity_id));
}

/** Finds the pending mapping of a connection that has waited longest. */
export async function findFirstPending(
  database: Database,
  scope: Scope,
  connection_id: string,
): Promise<IntegrationMappingModel | undefined> {
  const [first] = await IntegrationMappingModel.in(scope, database)
    .where({ connection_id })
    .whereNot('mapping_state', 'gone')
    .whereNotNull('pending_since')
    .orderBy(['pending_since', 'id'])
    .limit(1);
  return first;
}

/** Ends the pending state, unless the record was marked again after the mapping was read. */
export async function endPending(
  database: Database,
  { id, tenant_id, environment_id, pending_since }: IntegrationMappingModel,
  push_error: string | null,
): Promise<void> {
  await database('integration_mappings')
    .where({ id, tenant_id, environment_id, pending_since })
    .update({ pending_since: null, push_error });
}

/** Moves a record to the end of the queue after a failed attempt, so that the others are pushed first. */
export async function movePendingBack(
  database: Database,
  { id, tenant_id, environment_id, pending_since }: IntegrationMappingModel,
): Promise<void> {
  await database('integration_mappings')
    .where({ id, tenant_id, environment_id, pending_since })
    .update({ pending_since: database.raw('clock_timestamp()') });
}

const CONNECTIONS_AT_ONCE = 1_000;
/** Longest pause of the queue between two attempts of a job, rounded up. */
const BACKOFF_MAX = `interval '7 hours'`;

/**
 * Lists the connections of all tenants that have pending records and no push job that runs, is due or is being retried. A job without
 * attempts left is enqueued again. Stopped and paused connections are excluded.
 */
export async function listConnectionsToPush(database: Database, now: Date): Promise<JobConnection[]> {
  const { rows } = await database.raw(
    `select c.id, c.tenant_id, c.environment_id from connections as c
      where c.has_account and c.status = 'published' and c.connection_state = 'active'
        and (c.paused_until is null or c.paused_until <= :now)
        and exists (select from integration_mappings as pending
                     where pending.tenant_id = c.tenant_id and pending.environment_id = c.environment_id
                       and pending.connection_id = c.id and pending.pending_since is not null
                       and pending.mapping_state <> 'gone')
        and not exists (select from graphile_worker.jobs as job
                         where job.key = '${PUSH_TASK}:' || c.id
                           and (job.locked_at is not null
                                or (job.attempts < job.max_attempts
                                    and job.run_at <= clock_timestamp()
                                                      + case when job.attempts > 0 then ${BACKOFF_MAX} else interval '0' end)))
      order by c.id limit ${CONNECTIONS_AT_ONCE}`,
    { now },
  );
  return rows;
}

type PushCounts = {
  readonly pending: number;
  /** Wait of the longest waiting record in seconds. Connections that need attention are excluded. */
  readonly oldest_seconds: number;
  readonly refused: number;
  readonly needing_attention: number;
};

/** Counts the pending and refused records of all tenants, for the metrics. */
export async function countPushes(database: Database): Promise<PushCounts> {
  const { rows } = await database.raw(
    `with active as (
       select id from connections where has_account and status = 'published' and connection_state = 'active'
     )
     select count(*) filter (where mapping.pending_since is not null)::integer as pending,
            coalesce(extract(epoch from now() - min(mapping.pending_since) filter (where active.id is not null)), 0)::double precision
              as oldest_seconds,
            count(*) filter (where mapping.push_error is not null)::integer as refused,
            (select count(*)::integer from connections
              where has_account and status = 'published' and connection_state <> 'active') as needing_attention
       from integration_mappings as mapping left join active on active.id = mapping.connection_id
      where mapping.mapping_state <> 'gone' and (mapping.pending_since is not null or mapping.push_error is not null)`,
  );
  return rows[0];
}
