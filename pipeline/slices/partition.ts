/**
 * A partition that this worker owns. It takes slices of the log in order and applies each exactly once.
 *
 *   read → dedupe → meter → plan → write raw events → write bucket rows → done
 *
 * Corrections occur between the events. A slice with corrections writes its bucket rows together with the rows that they change.
 *
 * The plan is recorded before any write; after a crash the slice runs again with equal bounds. Every attempt has its own number, which
 * fences the statements of earlier attempts. A repeated attempt reads which rows exist and writes the missing ones (docs/decisions/0002). A
 * worker that lost the partition is fenced by its epoch (storage/progress/slices.ts).
 */
import { correctEvents } from '../../actions/metering/events/correct-events.ts';
import { type BucketRow, withDailyRollups } from '../../core/metering/bucket-aggregator.ts';
import { toShardRange } from '../../core/metering/event/identity.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { findMissingBucketRows, writeBucketRows } from '../../storage/events/bucket-rows.ts';
import { toHashRange, visitIdentityHashes } from '../../storage/events/identities.ts';
import { findMissingRows } from '../../storage/events/present.ts';
import { writeRows } from '../../storage/events/rows.ts';
import { EVENT_IDENTITIES, EVENT_OUTCOMES, EVENTS, type RowTarget, toMonthStart } from '../../storage/events/tables.ts';
import { raiseFence, setFence } from '../../storage/events/write-fence.ts';
import { isUnavailable } from '../../storage/foundation/failure.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { recordCrc } from '../../storage/log/continuity.ts';
import type { LogRecord } from '../../storage/log/log.ts';
import { loadInstallationId } from '../../storage/models/operations/installation.ts';
import { toPartitionWriter } from '../../storage/progress/attempts.ts';
import { recordLateUsage, toArrivals } from '../../storage/progress/late-usage.ts';
import { type PartitionProgress } from '../../storage/progress/partition-progress.ts';
import { RejectionNotices } from '../../storage/progress/rejection-arrivals.ts';
import { buildNotification, hasSliceSubscribers } from '../../storage/progress/slice-notifications.ts';
import {
  enterBuckets,
  type FinishedSlice,
  finishSlice,
  planSlice,
  takePartition,
} from '../../storage/progress/slices.ts';
import { listStoredRejections, type StoredRejection } from '../../storage/progress/stored-rejections.ts';
import { enqueueUsageChecks } from '../../storage/progress/usage-checks.ts';
import { inSpan, inSyncSpan } from '../../tracing/spans.ts';
import { applyControlMessage } from '../control/control.ts';
import { MeterCatalogue } from '../control/meter-catalogue.ts';
import { EXACT_ONLY, IdentityMemory, type IdentityOptions, type ReadIdentities } from '../identity/identity-memory.ts';
import { pipelineMetrics } from '../metrics.ts';
import { dedupe } from '../steps/dedupe.ts';
import { meterEvents } from '../steps/meter-events.ts';
import { EventReader, type ReadEvent, type ReadResult } from '../steps/read-events.ts';
import { buildRejectedOutcome, deleteRejectedRows, findRejectedEvents, rejectEvent } from './rejected-events.ts';
import {
  countSlice,
  listEventRecords,
  listLoggedCorrections,
  listRejectionArrivals,
  type PreparedSlice,
} from './slice.ts';
import { computeRecordWork } from './slice-work.ts';
import { checkStoresAgree } from './stores-agree.ts';

/**
 * Number of slices after which the fence is raised, so that it rejects late copies of earlier inserts. ClickHouse deduplicates only some
 * thousands of recent blocks, and a slice may have many.
 */
const SLICES_PER_FENCE = 50;

export class Partition {
  readonly partition: number;
  readonly #stores: Stores;
  readonly #ownedPartition: PartitionProgress;
  readonly #writer: string;
  readonly #identities: IdentityMemory;
  #catalogue: MeterCatalogue;
  #next: bigint;
  #lastRecord: number | null;
  /** Number of the last attempt that wrote bucket rows. */
  #attempt = 0n;
  #slicesSinceFence = 0;
  readonly #reader = new EventReader();
  readonly #rejectionNotices = new RejectionNotices();
  /** Reason why the stores reject an event, by its position. Such an event becomes a dead letter. */
  readonly #rejectionReasons: Map<string, string>;

  /** Takes the partition over and rebuilds its identities in memory. */
  static async take(
    stores: Stores,
    partition: number,
    { owner, identities: identity_options = EXACT_ONLY }: { owner: string; identities?: IdentityOptions | undefined },
  ): Promise<Partition> {
    const owned_partition = await takePartition(stores.postgres, partition, owner);
    await checkStoresAgree(stores, owned_partition);
    const identities = await openIdentities(stores, owned_partition, identity_options);
    const catalogue = await MeterCatalogue.at(stores.postgres, partition, owned_partition.next_offset);
    const rejections = await listStoredRejections(stores.postgres, partition, owned_partition.next_offset);
    return new Partition(stores, { owned_partition, identities, catalogue, rejections });
  }

  private constructor(
    stores: Stores,
    parts: {
      owned_partition: PartitionProgress;
      identities: IdentityMemory;
      catalogue: MeterCatalogue;
      rejections: readonly StoredRejection[];
    },
  ) {
    this.#stores = stores;
    this.#ownedPartition = parts.owned_partition;
    this.partition = parts.owned_partition.partition;
    this.#writer = toPartitionWriter(this.partition);
    this.#identities = parts.identities;
    this.#catalogue = parts.catalogue;
    this.#next = parts.owned_partition.next_offset;
    this.#lastRecord = parts.owned_partition.last_record;
    this.#rejectionReasons = new Map(parts.rejections.map((event) => [formatPosition(event), event.reason]));
  }

  /** Everything before this offset is in the stores. */
  get next_offset(): bigint {
    return this.#next;
  }

  /** CRC-32 of the body of the record before `next_offset`, which reveals a replaced log (storage/log/continuity.ts); null if unknown. */
  get last_record(): number | null {
    return this.#lastRecord;
  }

  /** Bounds of a slice that a crash left unfinished; it runs again before any other. */
  get unfinished(): { from: bigint; to: bigint } | null {
    const { slice_from, slice_to } = this.#ownedPartition;
    return slice_from !== null && slice_to !== null && this.#next <= slice_from
      ? { from: slice_from, to: slice_to }
      : null;
  }

  get identities(): { count: number; bytes: number } {
    return { count: this.#identities.size, bytes: this.#identities.bytes };
  }

  /** Worst-case work of a record, by the current meters. */
  readonly computeWork = (record: LogRecord): number => computeRecordWork(this.#catalogue, record);

  /**
   * Runs between slices: moves old ids from memory to the disk. Every `SLICES_PER_FENCE` slices it also fences old inserts that a network
   * may deliver once more.
   */
  async maintain(): Promise<void> {
    await this.#identities.sealIfFull(this.#next);
    if (++this.#slicesSinceFence < SLICES_PER_FENCE) return;
    await setFence(this.#stores.clickhouse, { writer: this.#writer, attempt: this.#attempt });
    this.#slicesSinceFence = 0;
  }

  /** Releases the identities. No slice may begin afterwards. */
  close(): void {
    this.#identities.close();
  }

  /** A control message takes effect at its offset; returns the error of work that failed. */
  async applyControlMessage(record: LogRecord): Promise<Error | null> {
    this.#notifyUsageCache({ from: record.offset, to: record.offset + 1n, rows: [] });
    const { to, problem = null } = await applyControlMessage(this.#stores, this.#ownedPartition, record);
    this.#movePast(to, record);
    this.#catalogue = await MeterCatalogue.at(this.#stores.postgres, this.partition, to);
    return problem;
  }

  /** Computes the effect of the slice. Nothing is written yet. */
  async prepare(records: readonly LogRecord[]): Promise<PreparedSlice> {
    const { rejected_events, rejected_outcomes, ...read } = this.#separateRejected(
      inSyncSpan('slice.read', () => this.#reader.read(listEventRecords(records))),
    );
    const { new_events, repeats } = await inSpan('slice.identity', {}, () =>
      dedupe(this.#stores.clickhouse, this.#identities, read.events),
    );
    const metered = await inSpan('slice.meter', {}, () =>
      meterEvents(new_events, (scope) => this.#catalogue.findMeters(scope)),
    );
    return {
      records,
      from: records[0]!.offset,
      to: records.at(-1)!.offset + 1n,
      events: new_events,
      outcomes: [...read.dead_letters, ...repeats, ...metered.unusable, ...rejected_outcomes],
      rejected_events,
      unmatched: metered.unmatched,
      first_unmatched: metered.first_unmatched,
      bucket_rows: metered.bucket_rows,
      corrections: listLoggedCorrections(records),
    };
  }

  /** Writes a prepared slice. After a failure it may be called again; the effect is the same as of one call. */
  async write(slice: PreparedSlice): Promise<void> {
    const { postgres, log } = this.#stores;
    const { from, to, records } = slice;
    const plan = await planSlice(postgres, this.#ownedPartition, { from, to });
    if (plan.done) return this.#markFinished(slice);
    const dead_letters = slice.outcomes.filter(({ outcome }) => outcome === 'dead_letter');
    if (dead_letters.length > 0) await log.publishDeadLetters?.(dead_letters);
    await inSpan('slice.write_raw_rows', { attributes: { rows: slice.events.length } }, () =>
      this.#writeRaw(slice, plan),
    );
    const finished = {
      from,
      next_offset: to,
      watermark_us: records.reduce((latest, record) => Math.max(latest, record.received_at_us), 0),
      last_record: recordCrc(records.at(-1)!),
      counts: countSlice(slice),
      notification: await this.#buildNotification(slice.bucket_rows),
    };
    if (slice.corrections.length === 0) await this.#finish(slice, finished);
    else await this.#finishWithCorrections(slice, finished);
    this.#markFinished(slice);
    await this.#enqueueAlertChecks(slice);
  }

  async #finish(slice: PreparedSlice, finished: FinishedSlice): Promise<void> {
    await this.#writeBucketRows(slice.bucket_rows);
    await this.#publishUsage(slice, finished);
    await inSpan('slice.commit', {}, () => finishSlice(this.#stores.postgres, this.#ownedPartition, finished));
  }

  /**
   * Finishes a slice with corrections. Their rebuild also writes the bucket rows of the slice under the bucket lock, and one transaction
   * ends both.
   */
  async #finishWithCorrections(slice: PreparedSlice, finished: FinishedSlice): Promise<void> {
    await this.#publishUsage(slice, finished);
    const getVersion = (meterId: string) => this.#catalogue.getVersion(meterId);
    await inSpan('slice.correct', { attributes: { corrections: slice.corrections.length } }, () =>
      correctEvents(this.#stores, {
        owned_partition: this.#ownedPartition,
        records: slice.corrections,
        received_at_us: finished.watermark_us,
        own_before: slice.to,
        slice_rows: { rows: slice.bucket_rows, getVersion },
        writeSliceRows: () => this.#writeBucketRows(slice.bucket_rows),
        end: (transaction) => finishSlice(transaction, this.#ownedPartition, finished),
      }),
    );
  }

  async #publishUsage({ from, to, bucket_rows }: PreparedSlice, { watermark_us }: FinishedSlice): Promise<void> {
    this.#notifyUsageCache({ from, to, rows: bucket_rows });
    await recordLateUsage(this.#stores.postgres, toArrivals(bucket_rows), watermark_us);
  }

  /**
   * Enqueues alert checks and notices of rejected events after the slice was applied. If the store is unavailable, the periodic sweep makes
   * up for the missed checks, and the next rejected event for a missed notice.
   */
  async #enqueueAlertChecks(slice: PreparedSlice): Promise<void> {
    try {
      await enqueueUsageChecks(this.#stores.postgres, slice.bucket_rows);
      await this.#rejectionNotices.enqueue(this.#stores.postgres, listRejectionArrivals(slice));
    } catch (error) {
      if (!isUnavailable(error)) throw error;
    }
  }

  /** Builds the notification for processes that cache answers and run no pipeline; null if there are none. */
  async #buildNotification(rows: readonly BucketRow[]): Promise<string | null> {
    const catalogue = this.#catalogue;
    if (!(await hasSliceSubscribers(this.#stores.postgres))) return null;
    return buildNotification(rows, (meter_id) => catalogue.getVersion(meter_id));
  }

  #notifyUsageCache(slice: { from: bigint; to: bigint; rows: readonly BucketRow[] }): void {
    // Uses the meters of this slice, because the next control message may change them.
    const catalogue = this.#catalogue;
    const getVersion = (meter_id: string) => catalogue.getVersion(meter_id);
    this.#stores.usage_cache?.announceSlice({ owned_partition: this.#ownedPartition, ...slice, getVersion });
  }

  #markFinished(slice: PreparedSlice): void {
    this.#movePast(slice.to, slice.records.at(-1)!);
    pipelineMetrics.count(slice);
  }

  async #writeRaw(slice: PreparedSlice, { attempt, again }: { attempt: bigint; again: boolean }): Promise<void> {
    const { clickhouse } = this.#stores;
    const own = { writer: this.#writer, attempt };
    if (again) await raiseFence(clickhouse, own);
    if (slice.rejected_events.length > 0) await deleteRejectedRows(this.#stores, slice);
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

  #writeBucketRows(bucket_rows: readonly BucketRow[]): Promise<void> {
    return inSpan('slice.write_buckets', { attributes: { rows: bucket_rows.length } }, () =>
      this.#insertBucketRows(bucket_rows),
    );
  }

  async #insertBucketRows(bucket_rows: readonly BucketRow[]): Promise<void> {
    const { postgres, clickhouse } = this.#stores;
    const is_wide = new Set(bucket_rows.map((row) => toMonthStart(row.bucket_start_us))).size > 1;
    const { attempt, rows_since, days_before } = await enterBuckets(postgres, this.#ownedPartition, { is_wide });
    const own = { writer: this.#writer, attempt };
    let rows = withDailyRollups(bucket_rows, days_before);
    if (attempt !== rows_since) {
      await raiseFence(clickhouse, own);
      rows = await findMissingBucketRows(clickhouse, rows, { writer: this.#writer, since: rows_since });
    }
    const getVersion = (meterId: string) => this.#catalogue.getVersion(meterId);
    await writeBucketRows(clickhouse, { rows, getVersion }, own);
    this.#attempt = attempt;
  }

  #movePast(to: bigint, last: LogRecord): void {
    this.#stores.usage_cache?.confirmSlice({ ...this.#ownedPartition, next_offset: to });
    this.#next = to;
    this.#lastRecord = recordCrc(last);
  }

  /**
   * Sets the faulty events of a slice aside after the stores rejected it; returns false if there are none. This is a separate write
   * attempt, so that no statement of the previous attempt arrives after it reads.
   */
  async rejectFaultyEvents(records: readonly LogRecord[]): Promise<boolean> {
    const bounds = { from: records[0]!.offset, to: records.at(-1)!.offset + 1n };
    const { attempt, done } = await planSlice(this.#stores.postgres, this.#ownedPartition, bounds);
    if (done) return true;
    await raiseFence(this.#stores.clickhouse, { writer: this.#writer, attempt });
    const { events } = this.#separateRejected(this.#reader.read(listEventRecords(records)));
    const found = await findRejectedEvents(this.#stores, this.#catalogue, events);
    for (const rejected of found) {
      await rejectEvent(this.#stores, this.#ownedPartition, rejected);
      this.#rejectionReasons.set(formatPosition(rejected), rejected.reason);
    }
    return found.length > 0;
  }

  #separateRejected(
    read: ReadResult,
  ): ReadResult & { rejected_events: ReadEvent[]; rejected_outcomes: EventOutcome[] } {
    if (this.#rejectionReasons.size === 0) return { ...read, rejected_events: [], rejected_outcomes: [] };
    const findReason = (event: ReadEvent) => this.#rejectionReasons.get(formatPosition(event));
    const rejected_events = read.events.filter((event) => findReason(event) !== undefined);
    const rejected_outcomes = rejected_events.map((event) => buildRejectedOutcome(event, findReason(event)!));
    return {
      events: read.events.filter((event) => findReason(event) === undefined),
      dead_letters: read.dead_letters,
      rejected_events,
      rejected_outcomes,
    };
  }
}

/** Waits for all writes like Promise.all, but throws a failure only after all of them have ended. */
async function awaitAll(writes: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(writes);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

function formatPosition({ offset, position }: { offset: number; position: number }): string {
  return `${offset}.${position}`;
}

async function openIdentities(
  stores: Stores,
  { partition, next_offset: next }: PartitionProgress,
  options: IdentityOptions,
): Promise<IdentityMemory> {
  const { partition_count } = stores.log;
  const shards = toShardRange(partition, partition_count);
  const read: ReadIdentities = (range, visit) =>
    visitIdentityHashes(stores.clickhouse, { ...toHashRange(shards), partition, ...range }, visit);
  const installation = await loadInstallationId(stores.postgres);
  return IdentityMemory.open(options, { partition, partition_count, installation }, { next, read });
}
