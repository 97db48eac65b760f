/**
 * The pipeline's progress, partition by partition, decided by Postgres: which slice of offsets is in progress, how far the
 * stores are, and the epoch that fences a worker which lost its partition (design: ARCHITECTURE.md, "Exactly once").
 */
import { unavailable } from '../core/error.ts';
import type { Database } from './stores.ts';

export type SlicePhase = 'idle' | 'raw' | 'buckets';

export type SliceState = {
  readonly partition: number;
  readonly epoch: bigint;
  /** Everything before it is in the stores. */
  readonly next_offset: bigint;
  /** The slice in progress, if any: after a crash it is run again with the same bounds. */
  readonly slice_from: bigint | null;
  readonly slice_to: bigint | null;
  readonly phase: SlicePhase;
  readonly watermark_us: number;
  readonly planned_at: string | null;
  /** Who has closed the gate of the usage rows (storage/bucket-gate.ts); null while it is open. */
  readonly gate: string | null;
  /** Grows with each rebuild of usage rows. */
  readonly rebuilds: bigint;
  /** The UTC days (since 1970) before it have day rows, and whoever writes base rows of them writes day rows too. */
  readonly days_before: number;
};

/** Thrown when another worker has taken the partition over: drop everything, write nothing. */
export class FencedError extends Error {
  constructor(partition: number) {
    super(`partition ${partition} belongs to another worker now`);
    this.name = 'FencedError';
  }
}

/** Takes the partition over: from here on every older epoch is fenced. A gate that is closed is closed for it too. */
export async function takePartition(database: Database, partition: number, owner: string): Promise<SliceState> {
  return database.transaction(async (transaction) => {
    await lockGate(transaction);
    const { rows } = await transaction.raw(
      `insert into slices (partition, epoch, owner, gate, days_before)
       values (?, 1, ?, (select gate from slices where gate is not null limit 1),
               (select coalesce(max(days_before), 0) from slices))
       on conflict (partition) do update set epoch = slices.epoch + 1, owner = excluded.owner, updated_at = now()
       returning *`,
      [partition, owner],
    );
    return stateOf(rows[0]);
  });
}

const GATE_LOCK = 7_155_021;

/** Whoever closes the gate and whoever adds a partition take turns, so that no partition is left out. */
export async function lockGate(transaction: Database): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(?)`, [GATE_LOCK]);
}

export async function planSlice(
  database: Database,
  held: { partition: number; epoch: bigint },
  slice: { from: bigint; to: bigint; write_until?: number },
): Promise<SlicePlan> {
  // A slice that has begun to write its bucket rows stays in that phase when it is planned again: they may be there.
  const { rows } = await database.raw(
    `update slices s
        set slice_from = :from, slice_to = :to, updated_at = now(), write_until = coalesce(:write_until::bigint, s.write_until),
            phase = case when before.again and s.phase = 'buckets' then 'buckets' else 'raw' end,
            planned_at = case when before.again then s.planned_at else now() end
       from (select partition, write_until, coalesce(slice_from = :from and slice_to = :to, false) as again
               from slices where partition = :partition) as before
      where s.partition = before.partition and s.epoch = :epoch
     returning s.phase, extract(epoch from now() - s.planned_at)::float8 as age_s,
               case when before.again then before.write_until end as write_until`,
    {
      from: String(slice.from),
      to: String(slice.to),
      write_until: slice.write_until ?? null,
      partition: held.partition,
      epoch: String(held.epoch),
    },
  );
  if (rows.length !== 1) throw new FencedError(held.partition);
  const [{ phase, age_s, write_until }] = rows;
  return { phase, age_s: Number(age_s), earlier_until_s: write_until === null ? null : Number(write_until) };
}

export type SlicePlan = {
  readonly phase: SlicePhase;
  /** Since the slice was planned for the first time. */
  readonly age_s: number;
  /** Until when writes of an earlier try may arrive, on the clock of ClickHouse; null when there was none. */
  readonly earlier_until_s: number | null;
};

const GATE_WITHIN_MS = 5_000;
const PAUSE_MS = 20;

/**
 * Goes through the gate of the usage rows, and waits for a while where somebody has closed it. Answers the days that have day
 * rows: until the slice is finished it stays so, because who changes it closes the gate and waits.
 */
export async function enterBuckets(
  database: Database,
  held: { partition: number; epoch: bigint },
): Promise<{ days_before: number }> {
  const until = performance.now() + GATE_WITHIN_MS;
  for (;;) {
    const answer = await database.raw(
      `update slices set phase = 'buckets', updated_at = now() where partition = ? and epoch = ?
          and (phase = 'buckets' or gate is null
               or (gate like 'reading:%' and gate_until < extract(epoch from now())::bigint))
        returning days_before`,
      [held.partition, String(held.epoch)],
    );
    if (answer.rowCount === 1) return answer.rows[0];
    const { rows } = await database.raw(`select 1 from slices where partition = ? and epoch = ?`, [
      held.partition,
      String(held.epoch),
    ]);
    if (rows.length === 0) throw new FencedError(held.partition);
    if (performance.now() > until) throw unavailable('the usage rows (they are being rebuilt)');
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

export async function finishSlice(
  database: Database,
  held: { partition: number; epoch: bigint },
  done: { next_offset: bigint; watermark_us: number },
): Promise<void> {
  await fenced(
    database,
    held,
    `next_offset = ?, watermark_us = greatest(watermark_us, ?), slice_from = null, slice_to = null, phase = 'idle', planned_at = null, write_until = null`,
    [String(done.next_offset), done.watermark_us],
  );
}

/** `days_before` of an installation whose day rows were written with every slice. */
export const EVERY_DAY = 2_147_483_647;

/** The same for all partitions. */
export function daysBefore(progress: readonly SliceState[]): number {
  return progress[0]?.days_before ?? 0;
}

/** Inside the transaction that opens the gate (storage/bucket-gate.ts). */
export async function setDaysBefore(transaction: Database, days_before: number): Promise<void> {
  await transaction.raw(`update slices set days_before = ?`, [days_before]);
}

/** The progress of every partition: what a consistent read starts from and is checked against. */
export async function readProgress(database: Database): Promise<SliceState[]> {
  const { rows } = await database.raw(`select * from slices order by partition`);
  return rows.map(stateOf);
}

async function fenced(
  database: Database,
  held: { partition: number; epoch: bigint },
  change: string,
  bindings: (string | number)[],
): Promise<void> {
  const answer = await database.raw(
    `update slices set ${change}, updated_at = now() where partition = ? and epoch = ?`,
    [...bindings, held.partition, String(held.epoch)],
  );
  if (answer.rowCount !== 1) throw new FencedError(held.partition);
}

function stateOf(row: Record<string, string | number | null>): SliceState {
  const offset = (value: string | number | null | undefined) =>
    value === null || value === undefined ? null : BigInt(value);
  return {
    partition: Number(row.partition),
    epoch: BigInt(row.epoch!),
    next_offset: BigInt(row.next_offset!),
    slice_from: offset(row.slice_from),
    slice_to: offset(row.slice_to),
    phase: row.phase as SlicePhase,
    watermark_us: Number(row.watermark_us),
    planned_at: row.planned_at as string | null,
    gate: row.gate as string | null,
    rebuilds: BigInt(row.rebuilds ?? 0),
    days_before: Number(row.days_before),
  };
}
