/**
 * Versions of meters as the pipeline applies them. A version is announced with the change itself. Each partition of the log reads its
 * control message at an offset of its own (the barrier), and counts by the version from there on. Earlier events are back-filled from the
 * raw events, so every event is counted once.
 */

import type { Scope } from '../../core/foundation/scope.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import type { Database } from '../foundation/stores.ts';
import { enqueueMessage } from './outbox.ts';

type MeterVersionState = 'announced' | 'backfilling' | 'live' | 'stopped';

export type MeterVersion = Scope & {
  readonly meter_id: string;
  readonly version: number;
  /** Null from the moment at which the meter stops counting. */
  readonly definition: MeterDefinition | null;
  readonly state: MeterVersionState;
};

/** Body of a control message. */
export type BarrierMessage = { readonly type: 'meter'; readonly meter_id: string; readonly version: number };

export async function announceMeterVersion(
  transaction: Database,
  scope: Scope,
  { meter_id, version, definition }: { meter_id: string; version: number; definition: MeterDefinition | null },
): Promise<void> {
  await transaction.raw(
    `insert into meter_versions (meter_id, version, tenant_id, environment_id, definition) values (?, ?, ?, ?, ?::jsonb)`,
    [meter_id, version, scope.tenant_id, scope.environment_id, definition === null ? null : JSON.stringify(definition)],
  );
  await transaction.raw(
    `update meters set state = 'backfilling' where tenant_id = ? and environment_id = ? and id = ? and status = 'published'`,
    [scope.tenant_id, scope.environment_id, meter_id],
  );
  const message: BarrierMessage = { type: 'meter', meter_id, version };
  await enqueueMessage(transaction, scope, message);
}

export async function loadGreatestVersions(
  database: Database,
  meter_ids: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await database.raw(
    `select meter_id, max(version) as version from meter_versions where meter_id = any(?) group by meter_id`,
    [[...meter_ids]],
  );
  return new Map(rows.map(({ meter_id, version }: { meter_id: string; version: number }) => [meter_id, version]));
}

/** Lists the versions by which a partition counts from an offset on: for each meter the last one whose barrier it has passed. */
export async function listVersionsAt(database: Database, partition: number, offset: bigint): Promise<MeterVersion[]> {
  const { rows } = await database.raw(
    `select distinct on (v.meter_id) v.* from meter_versions v join meter_barriers b using (meter_id, version)
      where b.partition = ? and b.from_offset < ? order by v.meter_id, v.version desc`,
    [partition, String(offset)],
  );
  return rows;
}

/**
 * Lists the newest definitions of the meters of a tenant and environment. A new definition takes effect when it has reached every
 * partition.
 */
export async function listNewestDefinitions(database: Database, scope: Scope): Promise<MeterDefinition[]> {
  const { rows } = await database.raw(
    `select distinct on (meter_id) definition from meter_versions where tenant_id = ? and environment_id = ?
      order by meter_id, version desc`,
    [scope.tenant_id, scope.environment_id],
  );
  return rows.flatMap((row: { definition: MeterDefinition | null }) => row.definition ?? []);
}

/** Records a barrier. The first one counts; a message that was appended twice has no effect. */
export async function recordBarrier(
  transaction: Database,
  barrier: { meter_id: string; version: number; partition: number; from_offset: bigint },
): Promise<void> {
  await transaction.raw(
    `insert into meter_barriers (meter_id, version, partition, from_offset) values (?, ?, ?, ?) on conflict do nothing`,
    [barrier.meter_id, barrier.version, barrier.partition, String(barrier.from_offset)],
  );
}

/** Lists the versions whose barrier every partition has passed and that are not yet live, oldest first. */
export async function listVersionsToBackfill(database: Database, partitionCount: number): Promise<MeterVersion[]> {
  const { rows } = await database.raw(
    `select v.* from meter_versions v where v.state in ('announced', 'backfilling') and v.settling_rebuild is null
        and (select count(*) from meter_barriers b where b.meter_id = v.meter_id and b.version = v.version) >= ?
      order by v.created_at, v.meter_id, v.version`,
    [partitionCount],
  );
  return rows;
}

/** Whether a later version has a definition. A later version that only stops the meter still needs the rows of the previous one. */
export async function isSuperseded(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<boolean> {
  const { rows } = await database.raw(
    `select exists (select from meter_versions where meter_id = ? and version > ? and definition is not null) as found`,
    [meter_id, version],
  );
  return rows[0].found;
}

/** Whether the past of any meter is still being counted, or about to be. */
export async function hasUnsettledVersions(database: Database): Promise<boolean> {
  const { rows } = await database.raw(
    `select exists (select 1 from meter_versions where state in ('announced', 'backfilling')) as any`,
  );
  return rows[0].any;
}

/** Separates the locks of backfills from the advisory locks of other applications on the server. */
const BACKFILL_LOCKS = 7_155_020;

/** Locks the back-fill of the version until the transaction ends, even if its process dies; false if another transaction has the lock. */
export async function lockBackfill(
  transaction: Database,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<boolean> {
  const { rows } = await transaction.raw(`select pg_try_advisory_xact_lock(?, hashtext(?)) as mine`, [
    BACKFILL_LOCKS,
    `${meter_id}:${version}`,
  ]);
  return rows[0].mine;
}

/**
 * Loads the offset at which each partition passed the barrier of the version. It is 0 for a partition that was added later, because such a
 * partition counts by the version from its first record on.
 */
export async function loadBarriers(
  database: Database,
  version: { meter_id: string; version: number },
): Promise<Map<number, bigint>> {
  const { rows } = await database.raw(
    `select partition, from_offset from meter_barriers where meter_id = ? and version = ?`,
    [version.meter_id, version.version],
  );
  return new Map(
    rows.map(({ partition, from_offset }: { partition: number; from_offset: string }) => {
      const offset = BigInt(from_offset);
      return [partition, offset < 0n ? 0n : offset];
    }),
  );
}

export type CurrentBackfillPart = {
  readonly day: number;
  /** Number of the part within the day, from 0 on. */
  readonly part: number;
  /** Number of days done, and of all days. */
  readonly done: number;
  readonly days: number;
};

/** Number of this attempt to write a part, and number of the first attempt that may have written it. */
export type PartBegun = { readonly attempt: bigint; readonly since: bigint };

/** Number of events of a part, fixed when the back-fill began, so that a resumed back-fill divides a day into the same parts. */
export async function loadPartSize(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
  events: number,
): Promise<number> {
  const { rows } = await database.raw(
    `update meter_versions set backfill_part_events = coalesce(backfill_part_events, ?)
      where meter_id = ? and version = ? returning backfill_part_events as events`,
    [events, meter_id, version],
  );
  return rows[0].events;
}

/** Records a part before any of it is written; null if the part is done. */
export async function beginPart(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
  { day, part, done, days }: CurrentBackfillPart,
): Promise<PartBegun | null> {
  const { rows } = await database.raw(
    `update meter_versions v set state = 'backfilling', backfilled_days = :done, backfill_days = :days,
            part_since = case when v.backfilling_day = :day and v.backfilling_part = :part
                              then coalesce(v.part_since, next.attempt) else next.attempt end,
            backfilling_part = :part, backfilling_day = :day
       from (select nextval('write_attempts') as attempt) as next
      where v.meter_id = :meter_id and v.version = :version
        and :day > coalesce(v.backfilled_until, :day - 1) and not :day = any(v.uncertain_days)
        and not (v.backfilling_day = :day and v.backfilling_part > :part)
      returning next.attempt::text, v.part_since::text as since`,
    { day, part, done, days, meter_id, version },
  );
  return rows[0] ? { attempt: BigInt(rows[0].attempt), since: BigInt(rows[0].since) } : null;
}

export async function finishDay(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
  { day, done }: { readonly day: number; readonly done: number },
): Promise<void> {
  await database.raw(
    `update meter_versions set backfilled_until = greatest(backfilled_until, :day), backfilled_days = :done
      where meter_id = :meter_id and version = :version`,
    { day, done: done + 1, meter_id, version },
  );
}

/** Marks a version as waiting for this rebuild, which makes it live. */
export async function markSettling(
  transaction: Database,
  { meter_id, version }: { meter_id: string; version: number },
  rebuild: string,
): Promise<void> {
  await transaction.raw(`update meter_versions set settling_rebuild = ? where meter_id = ? and version = ?`, [
    rebuild,
    meter_id,
    version,
  ]);
}

export type BackfillProgress = {
  /** Days whose back-fill an earlier release of Farthing began, without recording its attempt; a rebuild counts them. */
  readonly uncertain_days: readonly number[];
  /** Last day that is counted. */
  readonly backfilled_until: number | null;
  readonly backfilling_day: number | null;
  /** Number of the part of `backfilling_day` that is in progress; parts with smaller numbers are written. */
  readonly backfilling_part: number;
};

export async function readVersion(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<MeterVersion & BackfillProgress> {
  const { rows } = await database.raw(`select * from meter_versions where meter_id = ? and version = ?`, [
    meter_id,
    version,
  ]);
  return rows[0];
}

export async function finishVersion(
  database: Database,
  version: { meter_id: string; version: number },
  state: 'live' | 'stopped',
): Promise<void> {
  await database.raw(`update meter_versions set state = ?, live_at = now() where meter_id = ? and version = ?`, [
    state,
    version.meter_id,
    version.version,
  ]);
  await database.raw(`update meters set state = 'live' where id = ? and version = ?`, [
    version.meter_id,
    version.version,
  ]);
}

/** Lists the meters that have ever counted events with these names. */
export async function listMetersByEventNames(
  database: Database,
  scope: Scope,
  names: readonly string[],
): Promise<string[]> {
  const { rows } = await database.raw(
    `select distinct meter_id from meter_versions
      where tenant_id = ? and environment_id = ? and trim(definition->>'event_name') = any(?) order by meter_id`,
    [scope.tenant_id, scope.environment_id, [...names]],
  );
  return rows.map((row: { meter_id: string }) => row.meter_id);
}

/** Lists the meters to audit: those with a version, including meters that no longer count events. */
export async function listMetersToAudit(
  database: Database,
  wanted: { tenant_id?: string | undefined; environment_id?: string | undefined; meter_id?: string | undefined },
): Promise<(Scope & { meter_id: string })[]> {
  const filters = Object.entries(wanted).filter(([, value]) => value !== undefined) as [string, string][];
  const conditions = filters.map(([column]) => `${column} = ?`).join(' and ') || 'true';
  const { rows } = await database.raw(
    `select distinct tenant_id, environment_id, meter_id from meter_versions where ${conditions}
      order by tenant_id, environment_id, meter_id`,
    filters.map(([, value]) => value),
  );
  return rows;
}

type MeterCounting = {
  readonly state: 'backfilling' | 'live' | 'stopped';
  readonly backfill: { readonly days_done: number; readonly days: number | null; readonly live_at: string | null };
};

/** Loads the state and back-fill progress of the newest version of a meter. */
export async function loadMeterCounting(database: Database, scope: Scope, meterId: string): Promise<MeterCounting> {
  const { rows } = await database.raw(
    `select state, definition is null as stops, backfilled_days, backfill_days, live_at from meter_versions
      where tenant_id = ? and environment_id = ? and meter_id = ? order by version desc limit 1`,
    [scope.tenant_id, scope.environment_id, meterId],
  );
  const [newest] = rows;
  if (!newest) throw new Error(`meter ${meterId} has no version to count by`);
  const { backfilled_days: days_done, backfill_days: days, live_at } = newest;
  const state = newest.stops ? 'stopped' : newest.state === 'live' ? 'live' : 'backfilling';
  return { state, backfill: { days_done, days: state === 'live' ? days_done : days, live_at } };
}

/** Finds the definition of a meter at a version, and the final offset of each partition if the meter was stopped after it. */
export async function findDefinitionAt(
  database: Database,
  scope: Scope,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<{ definition: MeterDefinition; stop: ReadonlyMap<number, bigint> } | null> {
  const { rows } = await database.raw(
    `select version, definition from meter_versions
      where tenant_id = ? and environment_id = ? and meter_id = ? and (version = ? or version > ? and definition is null)
      order by version limit 2`,
    [scope.tenant_id, scope.environment_id, meter_id, version, version],
  );
  const [own, stopped] = rows as { version: number; definition: MeterDefinition | null }[];
  if (own?.version !== version || own.definition === null) return null;
  const stop = stopped
    ? await loadBarriers(database, { meter_id, version: stopped.version })
    : new Map<number, bigint>();
  return { definition: own.definition, stop };
}
