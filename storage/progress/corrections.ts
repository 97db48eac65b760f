/**
 * Table `event_corrections` in Postgres: user, time and reason of each void or replacement of an accepted event. The request and its
 * message to the partition of the id are one transaction. Corrections take precedence in the order of their numbers.
 */

import type { Scope } from '../../core/foundation/scope.ts';
import type { CorrectionAction, CorrectionState } from '../../core/metering/correction.ts';
import { IdentityHasher, toShard } from '../../core/metering/event/identity.ts';
import { joinBatch } from '../concurrency/batched.ts';
import type { Database } from '../foundation/stores.ts';
import { enqueueMessage } from './outbox.ts';

export type Correction = Scope & {
  readonly id: string;
  readonly event_id: string;
  readonly action: CorrectionAction;
  /** JSON text of the corrected event; null for a void. */
  readonly replacement: string | null;
  readonly reason: string;
  readonly requested_by: string;
  readonly requested_at: string;
  readonly state: CorrectionState;
  readonly applied_at: string | null;
  /** Place in the log where the pipeline first read it; null before that, and for corrections of a release that did not record it. */
  readonly log_partition: number | null;
  readonly log_offset: string | null;
};

/** Author of a void of an event that the stores rejected; the event may be replayed as a dead letter. */
export const PIPELINE = 'pipeline';

/** Body of the control message. */
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

/** Whether any correction of the environment has not taken effect yet. */
export async function hasOpenCorrections(database: Database, scope: Scope): Promise<boolean> {
  const { rows } = await database.raw(
    `select from event_corrections
      where tenant_id = ? and environment_id = ? and applied_at is null and state = 'requested' limit 1`,
    [scope.tenant_id, scope.environment_id],
  );
  return rows.length > 0;
}

/** Whether any event of the environment was corrected. */
export async function hasCorrections(database: Database, scope: Scope): Promise<boolean> {
  const { rows } = await database.raw(
    `select from event_corrections where tenant_id = ? and environment_id = ? and state <> 'unknown_event' limit 1`,
    [scope.tenant_id, scope.environment_id],
  );
  return rows.length > 0;
}

/** Lists the corrections that have not taken effect yet, in order of precedence. */
export async function listPendingCorrections(database: Database, ids: readonly string[]): Promise<Correction[]> {
  const { rows } = await database.raw(
    `select * from event_corrections where id = any(?::bigint[]) and state = 'requested' order by id`,
    [[...ids]],
  );
  return rows;
}

/** Number of the latest applied correction that this partition read, if any. */
export async function findNewestApplied(database: Database, partition: number): Promise<string[]> {
  const { rows } = await database.raw(
    `select id from event_corrections where log_partition = ? and state = 'applied' order by log_offset desc limit 1`,
    [partition],
  );
  return rows.map(({ id }: { id: string }) => id);
}

/**
 * Lists events whose corrections took effect after the version of a meter was announced, compared by sequence numbers and not by clocks.
 */
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
 * Whether any event was corrected since `since`. A margin of one hour covers messages in flight and clock differences. Corrections have
 * instants of the machine's clock, so in an environment with a test clock every correction counts.
 */
export async function hasCorrectionsSince(database: Database, scope: Scope, since: Date): Promise<boolean> {
  const key = `corrections since ${scope.tenant_id} ${scope.environment_id} ${since.getTime()}`;
  const answer = await joinBatch(database, { key, query: since }, async (queries) => {
    // Each correction reports a change of the id `.../corrections`, so cached answers that depend on this result become stale.
    const { rows } = await database.raw(
      `select ? as id, exists (select from event_corrections
        where tenant_id = ? and environment_id = ? and state <> 'unknown_event'
          and (applied_at is null or greatest(applied_at, requested_at) >= ?::timestamptz - interval '1 hour'
               or exists (select from test_clocks where tenant_id = ? and environment_id = ?))) as found`,
      [
        `${scope.environment_id}/corrections`,
        scope.tenant_id,
        scope.environment_id,
        since,
        scope.tenant_id,
        scope.environment_id,
      ],
    );
    return queries.map(() => rows[0] as { id: string; found: boolean });
  });
  return answer.found;
}

const EVENT_LOCKS = 7_155_022;

/** Serializes the corrections of one event. */
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

/** Returns the place of the correction in the log, if recorded. */
export function toLogPosition({
  log_partition: partition,
  log_offset,
}: Pick<Correction, 'log_partition' | 'log_offset'>): { partition: number; offset: number } | null {
  return partition === null || log_offset === null ? null : { partition, offset: Number(log_offset) };
}

/** Marks a correction as applied at its position in the log; without a position its event was never accepted. */
export async function markCorrectionApplied(
  transaction: Database,
  id: string,
  position: { readonly partition: number; readonly offset: number } | null,
): Promise<void> {
  await transaction.raw(
    `update event_corrections
        set state = ?, applied_at = now(), applied_number = nextval('write_attempts'), log_partition = ?, log_offset = ?
      where id = ?`,
    [position ? 'applied' : 'unknown_event', position?.partition ?? null, position?.offset ?? null, id],
  );
}

/**
 * Makes the pipeline repeat corrections whose rows in ClickHouse are missing or wrong. Corrections whose state has changed meanwhile are
 * skipped.
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

export async function countOpenCorrections(database: Database, ids: readonly string[]): Promise<number> {
  const { rows } = await database.raw(
    `select count(*)::int as open from event_corrections where id = any(?::bigint[]) and state = 'requested'`,
    [[...ids]],
  );
  return rows[0].open;
}
