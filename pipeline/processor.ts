/**
 * Main loop of the pipeline: for each assigned partition of the log, it cuts the records into slices and applies them. It waits for an
 * unavailable store, drops a partition that was revoked, and halts one with a missing record (storage/log/continuity.ts).
 */
import type { Logger } from 'pino';
import { isUnavailable } from '../storage/foundation/failure.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { checkContinues, PartitionStopped } from '../storage/log/continuity.ts';
import type {
  ConsumerProgress,
  LogConsumer,
  LogRecord,
  PartitionBatch,
  PartitionHandler,
  StoredPosition,
} from '../storage/log/log.ts';
import { FencedError, SliceOrderError } from '../storage/progress/slices.ts';
import type { IdentityOptions } from './identity/identity-memory.ts';
import { pipelineMetrics } from './metrics.ts';
import { Partition } from './slices/partition.ts';
import { isCorrection } from './slices/slice.ts';
import { SLICE_WORK_MAX } from './slices/slice-work.ts';
import { traceSlice } from './slices/trace-slice.ts';

export type ProcessorOptions = {
  owner: string;
  slice_events_max: number;
  logger: Logger;
  /** If absent, all seen ids are held in memory as an exact set. */
  identities?: IdentityOptions | undefined;
  /** Called after a control message other than a correction was applied. */
  onControlMessage?: () => void;
};

export async function startProcessor(stores: Stores, options: ProcessorOptions): Promise<LogConsumer> {
  return stores.log.consume(new Processor(stores, options));
}

class Processor implements PartitionHandler {
  readonly #stores: Stores;
  readonly #options: ProcessorOptions;
  readonly #partitions = new Map<number, { partition: Partition; pending: LogRecord[] }>();
  /** Reason why a partition is halted; each reason is logged once. */
  readonly #stopped = new Map<number, string>();

  constructor(stores: Stores, options: ProcessorOptions) {
    this.#stores = stores;
    this.#options = options;
  }

  async assigned(partition: number): Promise<StoredPosition> {
    const taken = await Partition.take(this.#stores, partition, this.#options);
    this.#drop(partition);
    this.#partitions.set(partition, { partition: taken, pending: [] });
    pipelineMetrics.identities(partition, taken.identities.count);
    pipelineMetrics.stopped(partition, this.#stopped.has(partition));
    const { next_offset, last_record, unfinished } = taken;
    return { next_offset, last_record, min_end_offset: unfinished?.to ?? next_offset };
  }

  async revoked(partition: number): Promise<void> {
    this.#drop(partition);
    this.#stopped.delete(partition);
    pipelineMetrics.notStopped(partition);
  }

  failed(partition: number, error: unknown): void {
    this.#drop(partition);
    const { logger } = this.#options;
    if (!(error instanceof PartitionStopped)) {
      pipelineMetrics.retry();
      logger.error({ err: error, partition }, 'a batch of the event log failed and will be tried again');
      return;
    }
    if (this.#stopped.get(partition) === error.message) return;
    this.#stopped.set(partition, error.message);
    pipelineMetrics.stopped(partition, true);
    logger.error({ err: error, partition }, 'a partition of the event log is halted');
  }

  failedInBackground(partition: number, error: unknown): void {
    this.#options.logger.warn({ err: error, partition }, 'background work of the event log failed');
  }

  caughtUp(partition: number): void {
    if (!this.#stopped.delete(partition)) return;
    pipelineMetrics.stopped(partition, false);
    this.#options.logger.info({ partition }, 'a partition of the event log is resumed');
  }

  #drop(partition: number): void {
    this.#partitions.get(partition)?.partition.close();
    this.#partitions.delete(partition);
    pipelineMetrics.noIdentities(partition);
  }

  async process(batch: PartitionBatch): Promise<ConsumerProgress> {
    const entry = this.#partitions.get(batch.partition);
    if (!entry) throw new FencedError(batch.partition);
    const { partition, pending } = entry;
    const { unfinished, next_offset } = partition;
    checkContinues(batch.partition, next_offset + BigInt(pending.length), batch.records);
    const records = [...pending, ...batch.records];
    const read_from = next_offset + BigInt(records.length);
    // A slice that a crash interrupted runs again as a whole. Until all records of the slice are read, the records read so far wait.
    entry.pending = unfinished && read_from < unfinished.to ? records : [];
    if (entry.pending.length > 0 || records.length === 0) return { stored_until: next_offset, read_from };
    const bounds = { events_max: this.#options.slice_events_max, computeWork: partition.computeWork };
    for (const slice of cut(records, unfinished, bounds)) await this.#run(batch, partition, slice);
    pipelineMetrics.identities(batch.partition, partition.identities.count);
    this.caughtUp(batch.partition);
    return { stored_until: partition.next_offset, read_from: partition.next_offset };
  }

  async #run(batch: PartitionBatch, partition: Partition, slice: readonly LogRecord[]): Promise<void> {
    const began = performance.now();
    const [first] = slice as [LogRecord];
    if (!belongsToSlices(first)) {
      const problem = await this.#retryWhileUnavailable(batch, () => partition.applyControlMessage(first));
      if (problem)
        this.#options.logger.error({ err: problem, partition: batch.partition }, 'daily rollups were not made');
      this.#options.onControlMessage?.();
      return;
    }
    await traceSlice(slice, () => this.#applySlice(batch, partition, slice));
    await this.#retryWhileUnavailable(batch, () => partition.maintain());
    pipelineMetrics.slice((performance.now() - began) / 1000);
  }

  async #applySlice(batch: PartitionBatch, partition: Partition, slice: readonly LogRecord[]): Promise<void> {
    try {
      await this.#prepareAndWrite(batch, partition, slice);
    } catch (error) {
      if (isNoEvents(error) || !(await this.#retryWhileUnavailable(batch, () => partition.rejectFaultyEvents(slice))))
        throw error;
      this.#options.logger.error(
        { err: error, partition: batch.partition },
        'events that the stores reject were dead-lettered',
      );
      await this.#prepareAndWrite(batch, partition, slice);
    }
  }

  async #prepareAndWrite(batch: PartitionBatch, partition: Partition, slice: readonly LogRecord[]): Promise<void> {
    const prepared = await this.#retryWhileUnavailable(batch, () => partition.prepare(slice));
    await this.#retryWhileUnavailable(batch, () => partition.write(prepared));
  }

  /** Retries while a store is unavailable and this worker owns the partition; heartbeats go to the log meanwhile. */
  async #retryWhileUnavailable<T>(batch: PartitionBatch, work: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      if (!batch.isOwner()) throw new FencedError(batch.partition);
      try {
        return await work();
      } catch (error) {
        if (error instanceof FencedError || !isUnavailable(error)) throw error;
        pipelineMetrics.retry();
        this.#options.logger.warn(
          { err: error, partition: batch.partition },
          'a store is unavailable, the slice waits',
        );
        await pause(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)));
        await batch.heartbeat();
      }
    }
  }
}

/** Maximum size of a slice, which is in memory several times: as bytes, as text, and as rows that are being sent. */
const SLICE_BYTES_MAX = 64 * 1024 * 1024;

/** Maximum number of corrections per slice; they form one rebuild. */
const CORRECTIONS_MAX = 1_000;

type SliceBounds = {
  readonly events_max: number;
  /**
   * Worst-case work of a record. It is computed just before the record is processed, because a control message before it may change the
   * meters.
   */
  readonly computeWork: (record: LogRecord) => number;
};

/**
 * Yields slices in order, lazily: first the slice that a crash left, with its own bounds. Corrections share a slice with the events around
 * them, so that waiting corrections form one rebuild. Every other control message is a slice of its own.
 */
export function* cut(
  records: readonly LogRecord[],
  unfinished: { from: bigint; to: bigint } | null,
  { events_max, computeWork: workOf }: SliceBounds,
): Generator<LogRecord[]> {
  let rest = records;
  if (unfinished) {
    yield rest.filter((record) => record.offset < unfinished.to);
    rest = rest.filter((record) => record.offset >= unfinished.to);
  }
  let slice: LogRecord[] = [];
  let [events, bytes, work, corrections] = [0, 0, 0, 0];
  for (const record of rest) {
    let more = workOf(record);
    const isFull =
      events + record.event_count > events_max ||
      bytes + record.body.length > SLICE_BYTES_MAX ||
      work + more > SLICE_WORK_MAX ||
      corrections === CORRECTIONS_MAX;
    if (slice.length > 0 && (isFull || !belongsToSlices(slice[0]!) || !belongsToSlices(record))) {
      yield slice;
      slice = [];
      [events, bytes, work, corrections] = [0, 0, 0, 0];
      more = workOf(record);
    }
    slice.push(record);
    events += record.event_count;
    bytes += record.body.length;
    work += more;
    corrections += Number(isCorrection(record));
  }
  if (slice.length > 0) yield slice;
}

function belongsToSlices(record: LogRecord): boolean {
  return record.kind === 'events' || isCorrection(record);
}

/** Whether the error cannot be caused by the events of a slice. */
function isNoEvents(error: unknown): boolean {
  return error instanceof FencedError || error instanceof SliceOrderError;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
