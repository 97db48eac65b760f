/**
 * Table `event_corrections` in Postgres: who voided or replaced an accepted event, when and why. The request and its message
 * to the partition of the id are one transaction; the number of the request is the order in which corrections count.
 */
import { IdentityHasher, toShard } from '../../core/event/identity.ts';
import type { Scope } from '../../core/scope.ts';
import { joinBatch } from '../models/batched.ts';
import type { Database } from '../stores.ts';
import { enqueueMessage } from './outbox.ts';

export type CorrectionAction = 'void' | 'replace';

export type Correction = Scope & {
  readonly id: string;
  readonly event_id: string;
  readonly action: CorrectionAction;
  /** The JSON text of the event as it should have been; null for a void. */
  readonly replacement: string | null;
  readonly reason: string;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly state: 'requested' | 'applied' | 'unknown_event';
  readonly applied_at: string | null;
  /** The pipeline met it first at this place of the log; null before that, and for corrections of a version that did not record it. */
  readonly log_partition: number | null;
  readonly log_offset: string | null;
};

/** Who voids an event that the stores refuse: it may be sent again as a dead letter. */
export const PIPELINE = 'pipeline';

/** The body of the control message. */
export type CorrectionMessage = { readonly type: 'correction'; readonly correction_id: string };

export function computeEventShard(scope: Scope, eventId: string): number {
  const hasher = new IdentityHasher(scope);
  hasher.hash(eventId);
  return toShard(hasher.high);
}

export async function listCorrections(database: Database, scope: Scope, eventId: string): Promise<Correction[]> {
  const { rows } = await database.raw(
    `select * from event_corrections where tenant_id = ? and environment_id = ? and event_id = ? order by id`,
    [scope.tenant_id, scope.environment_id, eventId],
  );
  return rows;
}

/** Whether some of this environment have not taken effect yet. */
export async function hasOpenCorrections(database: Database, scope: Scope): Promise<boolean> {
  const { rows } = await database.raw(
    `select from event_corrections
      where tenant_id = ? and environment_id = ? and applied_at is null and state = 'requested' limit 1`,
    [scope.tenant_id, scope.environment_id],
  );
  return rows.length > 0;
}

/** Those that have not taken effect yet, in the order in which they count. */
export async function listPendingCorrections(database: Database, ids: readonly string[]): Promise<Correction[]> {
  const { rows } = await database.raw(
    `select * from event_corrections where id = any(?::bigint[]) and state = 'requested' order by id`,
    [[...ids]],
  );
  return rows;
}

/** The number of the correction in effect that this partition met last, if there is one. */
export async function findNewestApplied(database: Database, partition: number): Promise<string[]> {
  const { rows } = await database.raw(
    `select id from event_corrections where log_partition = ? and state = 'applied' order by log_offset desc limit 1`,
    [partition],
  );
  return rows.map(({ id }: { id: string }) => id);
}

/** The events whose corrections took effect since the version of a meter was announced, by numbers that no clock gives. */
export async function listEventsCorrectedSince(
  database: Database,
  scope: Scope,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<string[]> {
  const { rows } = await database.raw(
    `select distinct event_id from event_corrections
      where tenant_id = ? and environment_id = ? and state = 'applied'
        and applied_number >= (select announced_number from meter_versions where meter_id = ? and version = ?)`,
    [scope.tenant_id, scope.environment_id, meter_id, version],
  );
  return rows.map((row: { event_id: string }) => row.event_id);
}

/**
 * Whether any event was corrected since: generous by an hour, for what was on its way, and clocks that are not alike. Corrections take
 * effect by the machine's clock, so that where the environment has one of its own, before it or behind it, any may have been since.
 */
export async function hasCorrectionsSince(database: Database, scope: Scope, since: Date): Promise<boolean> {
  const key = `corrections since ${scope.tenant_id} ${scope.environment_id} ${since.getTime()}`;
  return joinBatch(database, { key, query: since }, async (queries) => {
    const { rows } = await database.raw(
      `select exists (select from event_corrections
        where tenant_id = ? and environment_id = ? and state <> 'unknown_event'
          and (applied_at is null or greatest(applied_at, requested_at) >= ?::timestamptz - interval '1 hour'
               or exists (select from test_clocks where tenant_id = ? and environment_id = ?))) as found`,
      [scope.tenant_id, scope.environment_id, since, scope.tenant_id, scope.environment_id],
    );
    return queries.map(() => rows[0].found as boolean);
  });
}

const EVENT_LOCKS = 7_155_022;

/** Corrections of one event are asked for one after the other. */
export async function lockEvent(transaction: Database, scope: Scope, eventId: string): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(?, hashtext(?))`, [
    EVENT_LOCKS,
    `${scope.tenant_id}/${scope.environment_id}/${eventId}`,
  ]);
}

export async function addCorrection(
  transaction: Database,
  scope: Scope,
  queries: Pick<Correction, 'event_id' | 'action' | 'replacement' | 'reason' | 'requested_by'> & { requested_at: Date },
): Promise<Correction> {
  const { rows } = await transaction.raw(
    `insert into event_corrections (tenant_id, environment_id, event_id, action, replacement, reason, requested_by, requested_at)
     values (?, ?, ?, ?, ?, ?, ?, ?) returning *`,
    [
      scope.tenant_id,
      scope.environment_id,
      queries.event_id,
      queries.action,
      queries.replacement,
      queries.reason,
      queries.requested_by,
      queries.requested_at.toISOString(),
    ],
  );
  const message: CorrectionMessage = { type: 'correction', correction_id: rows[0].id };
  await enqueueMessage(transaction, scope, message, computeEventShard(scope, queries.event_id));
  return rows[0];
}

/** The place in the log that a correction was given, if it is recorded. */
export function toLogPlace({
  log_partition: partition,
  log_offset,
}: Pick<Correction, 'log_partition' | 'log_offset'>): { partition: number; offset: number } | null {
  return partition === null || log_offset === null ? null : { partition, offset: Number(log_offset) };
}

/** Applied at its place in the log; without one its event was never accepted. */
export async function markCorrectionApplied(
  transaction: Database,
  id: string,
  place: { readonly partition: number; readonly offset: number } | null,
): Promise<void> {
  await transaction.raw(
    `update event_corrections
        set state = ?, applied_at = now(), applied_number = nextval('write_attempts'), log_partition = ?, log_offset = ?
      where id = ?`,
    [place ? 'applied' : 'unknown_event', place?.partition ?? null, place?.offset ?? null, id],
  );
}

/**
 * Asks the pipeline to apply corrections again: their records in ClickHouse are missing, or say something else than was accepted. Those
 * that have changed their state meanwhile are left alone.
 */
export async function requestCorrectionsAgain(database: Database, ids: readonly string[]): Promise<void> {
  await database.transaction(async (transaction) => {
    const { rows } = await transaction.raw(
      `update event_corrections set state = 'requested', applied_at = null where id = any(?::bigint[]) and state = 'applied'
       returning id, tenant_id, environment_id, event_id`,
      [[...ids]],
    );
    const inOrder = (rows as (Scope & { id: string; event_id: string })[]).sort((a, b) => Number(a.id) - Number(b.id));
    for (const { id, event_id, ...scope } of inOrder) {
      const message: CorrectionMessage = { type: 'correction', correction_id: id };
      await enqueueMessage(transaction, scope, message, computeEventShard(scope, event_id));
    }
  });
}

/** Which of these have not taken effect yet. */
export async function countOpenCorrections(database: Database, ids: readonly string[]): Promise<number> {
  const { rows } = await database.raw(
    `select count(*)::int as open from event_corrections where id = any(?::bigint[]) and state = 'requested'`,
    [[...ids]],
  );
  return rows[0].open;
}
