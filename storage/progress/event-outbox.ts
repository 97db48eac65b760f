/**
 * Table `event_outbox`: events that are computed from a state, and written in one transaction with it. They are moved to the log afterwards
 * at least once, and their ids make them count once (docs/decisions/0032-cumulative-metrics.md).
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';

export type OutboxEvents = Scope & {
  readonly id: string;
  readonly received_at: string | Date;
  readonly event_ids: readonly string[];
  /** JSON text of each event. */
  readonly events: readonly string[];
};

/** Returns the id of the entry. */
export async function addOutboxEvents(
  transaction: Database,
  { tenant_id, environment_id }: Scope,
  { received_at, event_ids, events }: Pick<OutboxEvents, 'received_at' | 'event_ids' | 'events'>,
): Promise<string> {
  const row = { tenant_id, environment_id, received_at, event_ids: [...event_ids], events: [...events] };
  const [added] = await transaction('event_outbox').insert(row).returning('id');
  return added.id;
}

export async function hasOutboxEvents(postgres: Database): Promise<boolean> {
  const { rows } = await postgres.raw('select exists (select from event_outbox where failed_at is null) as has');
  return rows[0].has;
}

/** Age in seconds from which an entry is left over: the request that added it appends its events at once. */
const LEFT_SECONDS = 5;

/** Takes the oldest entry that is left over and that no other process moves, and locks it until the transaction ends. */
export async function takeOldestOutboxEvents(transaction: Database): Promise<OutboxEvents | undefined> {
  const { rows } = await transaction.raw(
    `select * from event_outbox where failed_at is null and created_at < now() - make_interval(secs => ?)
      order by id limit 1 for update skip locked`,
    [LEFT_SECONDS],
  );
  return rows[0];
}

/** Sets an entry aside that the log refuses for good. */
export async function failOutboxEvents(
  database: Database,
  { tenant_id, environment_id, id }: Pick<OutboxEvents, 'tenant_id' | 'environment_id' | 'id'>,
): Promise<void> {
  await database('event_outbox')
    .where({ tenant_id, environment_id, id })
    .update({ failed_at: database.raw('now()') });
}

/** Counts the entries that were set aside. */
export async function countFailedOutboxEntries(database: Database): Promise<{ failed: number }> {
  const { rows } = await database.raw('select count(*)::int as failed from event_outbox where failed_at is not null');
  return rows[0];
}

export async function removeOutboxEvents(
  database: Database,
  { tenant_id, environment_id }: Scope,
  ids: readonly string[],
): Promise<void> {
  await database('event_outbox').where({ tenant_id, environment_id }).whereIn('id', ids).del();
}
