/**
 * A partition that this worker owns. It takes slices of the log in order and applies each exactly once.
 *
 *   read → dedupe → meter → plan → write raw events → write buckets → done
 *
 * Corrections occur between the events. A slice with corrections writes its buckets together with the rows that they change.
 *
 * The plan is recorded before any write; after a crash the slice runs again with equal bounds. Every attempt has its own number, which
 * fences the statements of earlier attempts. A repeated attempt reads which rows exist and writes the missing ones (docs/decisions/0002). A
 * worker that lost the partition is fenced by its epoch (storage/progress/slices.ts).
 */
import { correctEvents } from '../../actions/metering/events/correct-events.ts';
import { toShardRange } from '../../core/metering/event/identity.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { type BucketRow, withDailyRollups } from '../../core/metering/plan.ts';
import { toHashRange, visitIdentityHashes } from '../../storage/events/identities.ts';
import { findMissingRows } from '../../storage/events/present.ts';
import { writeRows } from '../../storage/events/rows.ts';
import { EVENT_IDENTITIES, EVENT_OUTCOMES, EVENTS, type RowTarget, toMonthStart } from '../../storage/events/tables.ts';
import { findMissingUsageRows, writeUsageRows } from '../../storage/events/usage-rows.ts';
import { raiseFence, setFence } from '../../storage/events/write-fence.ts';
import { isUnavailable } from '../../storage/foundation/failure.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { recordCrc } from '../../storage/log/continuity.ts';
import type { LogRecord } from '../../storage/log/log.ts';
import { loadInstallationId } from '../../storage/models/operations/installation.ts';
import { toPartitionWriter } from '../../storage/progress/attempts.ts';
import { recordLateUsage, toArrivals } from '../../storage/progress/late-usage.ts';
import { listPoisonFrom, type PoisonPlace } from '../../storage/progress/poison.ts';
import { buildNotification, hasSliceSubscribers } from '../../storage/progress/slice-notifications.ts';
import { type SliceState } from '../../storage/progress/slice-state.ts';
import { enterBuckets, finishSlice, planSlice, type SliceDone, takePartition } from '../../storage/progress/slices.ts';
import { enqueueUsageChecks } from '../../storage/progress/usage-checks.ts';
import { inSpan, inSyncSpan } from '../../tracing/spans.ts';
import { passControl } from '../control/control.ts';
import { MeterCatalogue } from '../control/meter-catalogue.ts';
import { EXACT_ONLY, IdentityMemory, type IdentityOptions, type ReadIdentities } from '../identity/identity-memory.ts';
import { pipelineMetrics } from '../metrics.ts';
import { dedupe } from '../steps/dedupe.ts';
import { meterEvents } from '../steps/meter-events.ts';
import { EventReader, type ReadEvent, type ReadResult } from '../steps/read-events.ts';
import { findPoison, forgetRejected, poisonOutcome, setAside } from './poison.ts';
import { countSlice, listCorrections, listEventRecords, type PreparedSlice } from './slice.ts';
import { computeRecordWork } from './slice-work.ts';
import { checkStoresAgree } from './stores-agree.ts';

/** ClickHouse deduplicates only some thousands of recent blocks, and a slice may have many. The fence rejects older copies before that. */
const SLICES_PER_FENCE = 50;

export class Partition {
  readonly partition: number;
  readonly #stores: Stores;
  readonly #state: SliceState;
  readonly #writer: string;
  readonly #seen: IdentityMemory;
  #catalogue: MeterCatalogue;
  #next: bigint;
  #lastRecord: number | null;
  /** Attempt number of the newest usage rows written. */
  #attempt = 0n;
  #slicesSinceFence = 0;
  readonly #reader = new EventReader();
  /** Reason why the stores reject an event, by its position. Such an event becomes a dead letter. */
  readonly #poison: Map<string, string>;

  /** Takes the partition over and rebuilds its identities in memory. */
  static async take(
    stores: Stores,
    partition: number,
    { owner, identities = EXACT_ONLY }: { owner: string; identities?: IdentityOptions | undefined },
  ): Promise<Partition> {
    const state = await takePartition(stores.postgres, partition, owner);
    await checkStoresAgree(stores, state);
    const seen = await openIdentities(stores, state, identities);
    const catalogue = await MeterCatalogue.at(stores.postgres, partition, state.next_offset);
    const poison = await listPoisonFrom(stores.postgres, partition, state.next_offset);
    return new Partition(stores, { state, seen, catalogue, poison });
  }

  private constructor(
    stores: Stores,
    parts: { state: SliceState; seen: IdentityMemory; catalogue: MeterCatalogue; poison: readonly PoisonPlace[] },
  ) {
    this.#stores = stores;
    this.#state = parts.state;
    this.partition = parts.state.partition;
    this.#writer = toPartitionWriter(this.partition);
    this.#seen = parts.seen;
    this.#catalogue = parts.catalogue;
    this.#next = parts.state.next_offset;
    this.#lastRecord = parts.state.last_record;
    this.#poison = new Map(parts.poison.map((poison) => [formatPlace(poison), poison.reason]));
  }

  /** Everything before this offset is in the stores. */
  get next_offset(): bigint {
    return this.#next;
  }

  /** CRC-32 of the body of the record before `next_offset`; null if it is unknown. */
  get last_record(): number | null {
    return this.#lastRecord;
  }

  /** Bounds of a slice that a crash left unfinished; it runs again before any other. */
  get unfinished(): { from: bigint; to: bigint } | null {
    const { slice_from, slice_to } = this.#state;
    return slice_from !== null && slice_to !== null && this.#next <= slice_from
      ? { from: slice_from, to: slice_to }
      : null;
  }

  get identities(): { count: number; bytes: number } {
    return { count: this.#seen.size, bytes: this.#seen.bytes };
  }

  /** Worst-case work of a record, by the current meters. */
  readonly computeWork = (record: LogRecord): number => computeRecordWork(this.#catalogue, record);

  /**
   * Runs between slices: moves old ids from memory to the disk. Every `SLICES_PER_FENCE` slices it also fences old inserts that a network
   * may deliver once more.
   */
  async maintain(): Promise<void> {
    await this.#seen.sealIfFull(this.#next);
    if (++this.#slicesSinceFence < SLICES_PER_FENCE) return;
    await setFence(this.#stores.clickhouse, { writer: this.#writer, attempt: this.#attempt });
    this.#slicesSinceFence = 0;
  }

  /** No further slices follow. */
  close(): void {
    this.#seen.close();
  }

  /** A control message takes effect at its offset; returns the error of work that failed. */
  async passControl(record: LogRecord): Promise<Error | null> {
    this.#notifyUsageCache({ from: record.offset, to: record.offset + 1n, rows: [] });
    const { to, problem = null } = await passControl(this.#stores, this.#state, record);
    this.#passed(to, record);
    this.#catalogue = await MeterCatalogue.at(this.#stores.postgres, this.partition, to);
    return problem;
  }

  /** Computes the effect of the slice. Nothing is written yet. */
  async prepare(records: readonly LogRecord[]): Promise<PreparedSlice> {
    const { poisoned, refused, ...read } = this.#withoutPoison(
      inSyncSpan('slice.read', () => this.#reader.read(listEventRecords(records))),
    );
    const { accepted, repeats } = await inSpan('slice.identity', {}, () =>
      dedupe(this.#stores.clickhouse, this.#seen, read.events),
    );
    const metered = await inSpan('slice.meter', {}, () =>
      meterEvents(accepted, (scope) => this.#catalogue.findMeters(scope)),
    );
    return {
      records,
      from: records[0]!.offset,
      to: records.at(-1)!.offset + 1n,
      events: accepted,
      outcomes: [...read.dead, ...repeats, ...metered.unusable, ...poisoned],
      rejected: refused,
      unmatched: metered.unmatched,
      buckets: metered.buckets,
      corrections: listCorrections(records),
    };
  }

  /** Writes a prepared slice; may be repeated after a failure, with an equal effect. */
  async write(slice: PreparedSlice): Promise<void> {
    const { postgres, log } = this.#stores;
    const { from, to, records } = slice;
    const plan = await planSlice(postgres, this.#state, { from, to });
    if (plan.done) return this.#finished(slice);
    const letters = slice.outcomes.filter(({ outcome }) => outcome === 'dead_letter');
    if (letters.length > 0) await log.publishDeadLetters?.(letters);
    await inSpan('slice.write_raw_rows', { attributes: { rows: slice.events.length } }, () =>
      this.#writeRaw(slice, plan),
    );
    const progress = {
      from,
      next_offset: to,
      watermark_us: records.reduce((latest, record) => Math.max(latest, record.received_at_us), 0),
      last_record: recordCrc(records.at(-1)!),
      counts: countSlice(slice),
      notification: await this.#buildNotification(slice.buckets),
    };
    if (slice.corrections.length === 0) await this.#finish(slice, progress);
    else await this.#finishWithCorrections(slice, progress);
    this.#finished(slice);
    await this.#enqueueAlertChecks(slice);
  }

  async #finish(slice: PreparedSlice, progress: SliceDone): Promise<void> {
    await this.#writeBuckets(slice.buckets);
    await this.#publishUsage(slice, progress);
    await inSpan('slice.commit', {}, () => finishSlice(this.#stores.postgres, this.#state, progress));
  }

  /** The rebuild writes the usage rows of the slice, under the lock on the bucket rows; everything ends in one transaction. */
  async #finishWithCorrections(slice: PreparedSlice, progress: SliceDone): Promise<void> {
    await this.#publishUsage(slice, progress);
    const getVersion = (meterId: string) => this.#catalogue.getVersion(meterId);
    await inSpan('slice.correct', { attributes: { corrections: slice.corrections.length } }, () =>
      correctEvents(this.#stores, {
        held: this.#state,
        records: slice.corrections,
        received_at_us: progress.watermark_us,
        own_before: slice.to,
        beside: { rows: slice.buckets, versionOf: getVersion },
        writeBeside: () => this.#writeBuckets(slice.buckets),
        end: (transaction) => finishSlice(transaction, this.#state, progress),
      }),
    );
  }

  async #publishUsage({ from, to, buckets }: PreparedSlice, { watermark_us }: SliceDone): Promise<void> {
    this.#notifyUsageCache({ from, to, rows: buckets });
    await recordLateUsage(this.#stores.postgres, toArrivals(buckets), watermark_us);
  }

  /** The slice is already applied. If the store is unavailable, the sweep every few minutes finds the missed checks. */
  async #enqueueAlertChecks({ buckets }: PreparedSlice): Promise<void> {
    try {
      await enqueueUsageChecks(this.#stores.postgres, buckets);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
  }

  /** For processes that cache answers and have no pipeline. */
  async #buildNotification(rows: readonly BucketRow[]): Promise<string | null> {
    const catalogue = this.#catalogue;
    if (!(await hasSliceSubscribers(this.#stores.postgres))) return null;
    return buildNotification(rows, (meter_id) => catalogue.getVersion(meter_id));
  }

  #notifyUsageCache(slice: { from: bigint; to: bigint; rows: readonly BucketRow[] }): void {
    // Uses the meters of this slice, because the next control message may change them.
    const catalogue = this.#catalogue;
    const getVersion = (meter_id: string) => catalogue.getVersion(meter_id);
    this.#stores.usage_memory?.coming({ owned: this.#state, ...slice, getVersion });
  }

  #finished(slice: PreparedSlice): void {
    this.#passed(slice.to, slice.records.at(-1)!);
    pipelineMetrics.count(slice);
  }

  async #writeRaw(slice: PreparedSlice, { attempt, again }: { attempt: bigint; again: boolean }): Promise<void> {
    const { clickhouse } = this.#stores;
    const own = { writer: this.#writer, attempt };
    if (again) await raiseFence(clickhouse, own);
    if (slice.rejected.length > 0) await forgetRejected(this.#stores, slice);
    const put = async <Row extends ReadEvent | EventOutcome>(
      target: RowTarget<Row>,
      rows: readonly Row[],
      kind?: (row: Row) => string,
    ) => {
      const missing = again
        ? await findMissingRows(clickhouse, { table: target.table, rows, ...(kind ? { kind } : {}) })
        : rows;
      await writeRows(clickhouse, target, { rows: missing, attempt: own });
    };
    await awaitAll([
      put<ReadEvent>(EVENTS, slice.events),
      put<ReadEvent>(EVENT_IDENTITIES, slice.events),
      put<EventOutcome>(EVENT_OUTCOMES, slice.outcomes, ({ outcome, meter_id }) => `${outcome}/${meter_id}`),
    ]);
  }

  #writeBuckets(buckets: readonly BucketRow[]): Promise<void> {
    return inSpan('slice.write_buckets', { attributes: { rows: buckets.length } }, () => this.#putBuckets(buckets));
  }

  async #putBuckets(buckets: readonly BucketRow[]): Promise<void> {
    const { postgres, clickhouse } = this.#stores;
    const is_wide = new Set(buckets.map((row) => toMonthStart(row.bucket_start_us))).size > 1;
    const { attempt, rows_since, days_before } = await enterBuckets(postgres, this.#state, { is_wide });
    const own = { writer: this.#writer, attempt };
    let rows = withDailyRollups(buckets, days_before);
    if (attempt !== rows_since) {
      await raiseFence(clickhouse, own);
      rows = await findMissingUsageRows(clickhouse, rows, { writer: this.#writer, since: rows_since });
    }
    const getVersion = (meterId: string) => this.#catalogue.getVersion(meterId);
    await writeUsageRows(clickhouse, { rows, getVersion }, own);
    this.#attempt = attempt;
  }

  #passed(to: bigint, last: LogRecord): void {
    this.#next = to;
    this.#lastRecord = recordCrc(last);
  }

  /**
   * After the stores rejected a slice: sets the faulty events aside; false if there are none. It is an attempt of its own, so that no
   * statement of the previous attempt arrives after it reads.
   */
  async isolate(records: readonly LogRecord[]): Promise<boolean> {
    const bounds = { from: records[0]!.offset, to: records.at(-1)!.offset + 1n };
    const { attempt, done } = await planSlice(this.#stores.postgres, this.#state, bounds);
    if (done) return true;
    await raiseFence(this.#stores.clickhouse, { writer: this.#writer, attempt });
    const { events } = this.#withoutPoison(this.#reader.read(listEventRecords(records)));
    const found = await findPoison(this.#stores, this.#catalogue, events);
    for (const poison of found) {
      await setAside(this.#stores, this.#state, poison);
      this.#poison.set(formatPlace(poison), poison.reason);
    }
    return found.length > 0;
  }

  #withoutPoison(read: ReadResult): ReadResult & { refused: ReadEvent[]; poisoned: EventOutcome[] } {
    if (this.#poison.size === 0) return { ...read, refused: [], poisoned: [] };
    const findReason = (event: ReadEvent) => this.#poison.get(formatPlace(event));
    const refused = read.events.filter((event) => findReason(event) !== undefined);
    const poisoned = refused.map((event) => poisonOutcome(event, findReason(event)!));
    return {
      events: read.events.filter((event) => findReason(event) === undefined),
      dead: read.dead,
      refused,
      poisoned,
    };
  }
}

/** Like Promise.all, but on failure no write is in progress any more. */
async function awaitAll(writes: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(writes);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

function formatPlace({ offset, position }: { offset: number; position: number }): string {
  return `${offset}.${position}`;
}

async function openIdentities(
  stores: Stores,
  { partition, next_offset: next }: SliceState,
  options: IdentityOptions,
): Promise<IdentityMemory> {
  const { partition_count } = stores.log;
  const shards = toShardRange(partition, partition_count);
  const read: ReadIdentities = (place, visit) =>
    visitIdentityHashes(stores.clickhouse, { ...toHashRange(shards), partition, ...place }, visit);
  const installation = await loadInstallationId(stores.postgres);
  return IdentityMemory.open(options, { partition, partition_count, installation }, { next, read });
}
