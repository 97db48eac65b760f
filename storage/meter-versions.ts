/**
 * Versions of meters as the pipeline applies them. A version is announced with the change itself; each partition of the
 * log meets its control message at an offset of its own (the barrier), counts by it from there on, and what came before is
 * back-filled from the raw events: every event is counted once, whichever side it falls on.
 */
import type { MeterDefinition } from '../core/metering/meter-definition.ts';
import type { Scope } from '../core/scope.ts';
import { leaveMessage } from './outbox.ts';
import type { Database } from './stores.ts';

export type MeterVersionState = 'announced' | 'backfilling' | 'live' | 'stopped';

export type MeterVersion = Scope & {
  readonly meter_id: string;
  readonly version: number;
  /** Null from the moment at which the meter stops counting. */
  readonly definition: MeterDefinition | null;
  readonly state: MeterVersionState;
};

/** The body of a control message. */
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
  await transaction.raw(`update meters set state = 'backfilling' where id = ? and status = 'published'`, [meter_id]);
  const message: BarrierMessage = { type: 'meter', meter_id, version };
  await leaveMessage(transaction, scope, message);
}

/** The versions by which a partition counts from an offset on: of each meter the last whose barrier it has met. */
export async function versionsAt(database: Database, partition: number, offset: bigint): Promise<MeterVersion[]> {
  const { rows } = await database.raw(
    `select distinct on (v.meter_id) v.* from meter_versions v join meter_barriers b using (meter_id, version)
      where b.partition = ? and b.from_offset < ? order by v.meter_id, v.version desc`,
    [partition, String(offset)],
  );
  return rows;
}

/** The first meeting counts: a message that was appended twice changes nothing. */
export async function recordBarrier(
  transaction: Database,
  barrier: { meter_id: string; version: number; partition: number; from_offset: bigint },
): Promise<void> {
  await transaction.raw(
    `insert into meter_barriers (meter_id, version, partition, from_offset) values (?, ?, ?, ?) on conflict do nothing`,
    [barrier.meter_id, barrier.version, barrier.partition, String(barrier.from_offset)],
  );
}

/** Versions that every partition has met and that are not yet live, oldest first. */
export async function versionsToBackfill(database: Database, partitionCount: number): Promise<MeterVersion[]> {
  const { rows } = await database.raw(
    `select v.* from meter_versions v where v.state in ('announced', 'backfilling') and v.settling_rebuild is null
        and (select count(*) from meter_barriers b where b.meter_id = v.meter_id and b.version = v.version) >= ?
      order by v.created_at, v.meter_id, v.version`,
    [partitionCount],
  );
  return rows;
}

/** Whether the past of any meter is still being counted, or about to be. */
export async function hasUnsettledVersions(database: Database): Promise<boolean> {
  const { rows } = await database.raw(
    `select exists (select 1 from meter_versions where state in ('announced', 'backfilling')) as any`,
  );
  return rows[0].any;
}

/** Sets our locks apart from those that others may take on the same server. */
const BACKFILL_LOCKS = 7_155_020;

/** Whether this transaction is the one that back-fills the version; the lock ends with it, also when its process dies. */
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

/** Where each partition met the version: by partition. */
export async function barriersOf(
  database: Database,
  version: { meter_id: string; version: number },
): Promise<Map<number, bigint>> {
  const { rows } = await database.raw(
    `select partition, from_offset from meter_barriers where meter_id = ? and version = ?`,
    [version.meter_id, version.version],
  );
  return new Map(
    rows.map((row: { partition: number; from_offset: string }) => [row.partition, BigInt(row.from_offset)]),
  );
}

export type PartInHand = {
  readonly day: number;
  /** Which part of the day, from 0 on. */
  readonly part: number;
  /** How many days are done, of how many. */
  readonly done: number;
  readonly days: number;
  /** How long a write of the part may be tried again under the same token. */
  readonly trusted_s: number;
};

/**
 * How many events a part of this back-fill has: what was said when it began. One that began before days were cut into parts
 * wrote the day in hand as one, under a token that is not known any more: that day is left to a rebuild.
 */
export async function partSizeOf(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
  events: number,
): Promise<number> {
  const { rows } = await database.raw(
    `update meter_versions
        set uncertain_days = case when backfill_part_events is null and backfilling_day > coalesce(backfilled_until, backfilling_day - 1)
                                   and not backfilling_day = any(uncertain_days)
                                  then uncertain_days || backfilling_day else uncertain_days end,
            backfill_part_events = coalesce(backfill_part_events, ?)
      where meter_id = ? and version = ? returning backfill_part_events as events`,
    [events, meter_id, version],
  );
  return rows[0].events;
}

/**
 * Takes a part in hand; answers for how many seconds from now it may still be written, or null when it is done, or the
 * whole day uncertain because an earlier try of it is too long ago.
 */
export async function beginPart(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
  { day, part, done, days, trusted_s }: PartInHand,
): Promise<number | null> {
  const { rows } = await database.raw(
    `update meter_versions set state = 'backfilling', backfilled_days = :done, backfill_days = :days,
            uncertain_days = case when backfilling_day = :day and backfilling_part = :part
                                   and backfilling_since < now() - make_interval(secs => :trusted_s)
                                   and not :day = any(uncertain_days)
                                  then uncertain_days || :day::integer else uncertain_days end,
            backfilling_since = case when backfilling_day = :day and backfilling_part >= :part
                                     then backfilling_since else now() end,
            backfilling_part = case when backfilling_day = :day then greatest(backfilling_part, :part) else :part end,
            backfilling_day = :day
      where meter_id = :meter_id and version = :version and :day > coalesce(backfilled_until, :day - 1)
      returning case when backfilling_part = :part and not :day = any(uncertain_days)
                     then :trusted_s - extract(epoch from now() - backfilling_since) end as left_s`,
    { day, part, done, days, trusted_s, meter_id, version },
  );
  const left_s = rows[0]?.left_s ?? null;
  return left_s === null ? null : Number(left_s);
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

/** Days of a version that is not live yet, of which it is not known whether their rows hold a slice. */
export async function noteUncertainDays(
  transaction: Database,
  { meter_id, version }: { meter_id: string; version: number },
  days: readonly number[],
): Promise<void> {
  await transaction.raw(
    `update meter_versions set uncertain_days = (select array_agg(distinct day) from unnest(uncertain_days || ?::integer[]) as day)
      where meter_id = ? and version = ? and state in ('announced', 'backfilling')`,
    [[...days], meter_id, version],
  );
}

/** The version waits for this rebuild, which makes it live. */
export async function noteSettling(
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

export type Backfilled = {
  readonly uncertain_days: readonly number[];
  /** The last day that is counted. */
  readonly backfilled_until: number | null;
  readonly backfilling_day: number | null;
  /** Those before it are written. */
  readonly backfilling_part: number;
};

export async function readVersion(
  database: Database,
  { meter_id, version }: { meter_id: string; version: number },
): Promise<MeterVersion & Backfilled> {
  const { rows } = await database.raw(`select * from meter_versions where meter_id = ? and version = ?`, [
    meter_id,
    version,
  ]);
  return rows[0];
}

export async function settleVersion(
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

/** The newest version of a meter, and the newest that says what to count, which differ once the meter was stopped. */
export async function currentVersions(
  database: Database,
  scope: Scope,
  meterId: string,
): Promise<{ newest: MeterVersion; counting: MeterVersion } | undefined> {
  const { rows } = await database.raw(
    `select * from meter_versions where tenant_id = ? and environment_id = ? and meter_id = ? order by version desc limit 2`,
    [scope.tenant_id, scope.environment_id, meterId],
  );
  const [newest, before] = rows as MeterVersion[];
  const counting = newest?.definition === null ? before : newest;
  return newest && counting ? { newest, counting } : undefined;
}

/** The meters that have ever counted events of these names. */
export async function metersOfEvents(database: Database, scope: Scope, names: readonly string[]): Promise<string[]> {
  const { rows } = await database.raw(
    `select distinct meter_id from meter_versions
      where tenant_id = ? and environment_id = ? and trim(definition->>'event_name') = any(?) order by meter_id`,
    [scope.tenant_id, scope.environment_id, [...names]],
  );
  return rows.map((row: { meter_id: string }) => row.meter_id);
}

/** The meters that count or have counted, for audits. */
export async function metersToAudit(
  database: Database,
  wanted: { tenant_id?: string | undefined; environment_id?: string | undefined; meter_id?: string | undefined },
): Promise<(Scope & { meter_id: string })[]> {
  const asked = Object.entries(wanted).filter(([, value]) => value !== undefined) as [string, string][];
  const conditions = asked.map(([column]) => `${column} = ?`).join(' and ') || 'true';
  const { rows } = await database.raw(
    `select distinct tenant_id, environment_id, meter_id from meter_versions where ${conditions}
      order by tenant_id, environment_id, meter_id`,
    asked.map(([, value]) => value),
  );
  return rows;
}

export type MeterCounting = {
  readonly state: 'backfilling' | 'live' | 'stopped';
  readonly backfill: { readonly days_done: number; readonly days: number | null; readonly live_at: string | null };
};

/** How far the newest version of a meter is. */
export async function countingOf(database: Database, scope: Scope, meterId: string): Promise<MeterCounting> {
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
