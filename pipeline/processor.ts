/**
 * The one loop of the pipeline: for each partition that the log gives us, cut its records into slices and give each its
 * effect. A store that is away is waited for; a partition that was taken from us is dropped.
 */
import type { Logger } from 'pino';
import { FarthingError } from '../core/error.ts';
import type { LogConsumer, LogRecord, PartitionBatch, PartitionHandler } from '../storage/log/log.ts';
import { FencedError } from '../storage/slices.ts';
import type { Stores } from '../storage/stores.ts';
import type { IdentityOptions } from './identity-memory.ts';
import { pipelineMetrics } from './metrics.ts';
import { Partition } from './partition.ts';

export type ProcessorOptions = {
  owner: string;
  slice_events_max: number;
  logger: Logger;
  /** Everything is kept exactly and in memory when absent. */
  identities?: IdentityOptions | undefined;
};

export async function startProcessor(stores: Stores, options: ProcessorOptions): Promise<LogConsumer> {
  return stores.log.consume(new Processor(stores, options));
}

class Processor implements PartitionHandler {
  readonly #stores: Stores;
  readonly #options: ProcessorOptions;
  readonly #partitions = new Map<number, { partition: Partition; held: LogRecord[] }>();

  constructor(stores: Stores, options: ProcessorOptions) {
    this.#stores = stores;
    this.#options = options;
  }

  async assigned(partition: number): Promise<bigint> {
    const taken = await Partition.take(this.#stores, partition, this.#options);
    this.#drop(partition);
    this.#partitions.set(partition, { partition: taken, held: [] });
    pipelineMetrics.identities(partition, taken.identities.count);
    return taken.next_offset;
  }

  async revoked(partition: number): Promise<void> {
    this.#drop(partition);
  }

  failed(partition: number, error: unknown): void {
    this.#drop(partition);
    this.#options.logger.error({ err: error, partition }, 'a batch of the event log failed and will be tried again');
  }

  #drop(partition: number): void {
    this.#partitions.get(partition)?.partition.close();
    this.#partitions.delete(partition);
    pipelineMetrics.noIdentities(partition);
  }

  async process(batch: PartitionBatch): Promise<bigint> {
    const entry = this.#partitions.get(batch.partition);
    if (!entry) throw new FencedError(batch.partition);
    const { partition } = entry;
    const records = [...entry.held, ...batch.records.filter((record) => record.offset >= partition.next_offset)];
    entry.held = [];
    if (records.length === 0) return partition.next_offset;
    const last = records.at(-1)!.offset;
    const unfinished = partition.unfinished;
    if (unfinished && last < unfinished.to - 1n) {
      // The slice that a crash left is run again whole: wait for the rest of it. The stores know where we really are.
      entry.held = records;
      return last + 1n;
    }
    for (const slice of cut(records, unfinished, this.#options.slice_events_max))
      await this.#run(batch, partition, slice);
    pipelineMetrics.identities(batch.partition, partition.identities.count);
    return partition.next_offset;
  }

  async #run(batch: PartitionBatch, partition: Partition, slice: readonly LogRecord[]): Promise<void> {
    const began = performance.now();
    if (slice[0]!.kind === 'control') {
      const problem = await this.#untilDone(batch, () => partition.passControl(slice[0]!));
      if (problem) this.#options.logger.error({ err: problem, partition: batch.partition }, 'day rows were not made');
      return;
    }
    try {
      await this.#take(batch, partition, slice);
    } catch (error) {
      if (error instanceof FencedError || !(await this.#untilDone(batch, () => partition.isolate(slice)))) throw error;
      this.#options.logger.error(
        { err: error, partition: batch.partition },
        'events that cannot be written were dead-lettered',
      );
      await this.#take(batch, partition, slice);
    }
    await partition.settle();
    pipelineMetrics.slice((performance.now() - began) / 1000);
  }

  async #take(batch: PartitionBatch, partition: Partition, slice: readonly LogRecord[]): Promise<void> {
    const prepared = await this.#untilDone(batch, () => partition.prepare(slice));
    await this.#untilDone(batch, () => partition.write(prepared));
  }

  /** Tries again while a store is away and the partition is ours; the log hears that we are alive. */
  async #untilDone<T>(batch: PartitionBatch, work: () => Promise<T>): Promise<T> {
    for (let failures = 0; ; failures++) {
      if (!batch.isOwner()) throw new FencedError(batch.partition);
      try {
        return await work();
      } catch (error) {
        if (error instanceof FencedError || !mayPass(error)) throw error;
        pipelineMetrics.retry();
        this.#options.logger.warn({ err: error, partition: batch.partition }, 'a store is away, the slice waits');
        await pause(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)));
        await batch.heartbeat();
      }
    }
  }
}

/** A slice is in memory several times over: as bytes, as text, as rows on their way. */
const SLICE_BYTES_MAX = 64 * 1024 * 1024;

/** Slices in order: first what a crash left, with its own bounds; a control message stands alone. */
export function cut(
  records: readonly LogRecord[],
  unfinished: { from: bigint; to: bigint } | null,
  eventsMax: number,
): LogRecord[][] {
  const slices: LogRecord[][] = [];
  let rest = records;
  if (unfinished) {
    slices.push(rest.filter((record) => record.offset < unfinished.to));
    rest = rest.filter((record) => record.offset >= unfinished.to);
  }
  let slice: LogRecord[] = [];
  let events = 0;
  let bytes = 0;
  const close = () => {
    if (slice.length > 0) slices.push(slice);
    slice = [];
    events = 0;
    bytes = 0;
  };
  for (const record of rest) {
    const isFull = events + record.event_count > eventsMax || bytes + record.body.length > SLICE_BYTES_MAX;
    if (record.kind === 'control' || isFull) close();
    slice.push(record);
    events += record.event_count;
    bytes += record.body.length;
    if (record.kind === 'control') close();
  }
  close();
  return slices;
}

function mayPass(error: unknown): boolean {
  if (error instanceof FarthingError) return error.code === 'service_unavailable';
  const code = (error as { code?: string }).code ?? '';
  // Postgres is starting, stopping or unreachable; 57P0x and 08xxx are its own words for it.
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|57P0|08)/.test(code) ||
    /Timeout acquiring a connection|terminated|Connection ended/i.test(String(error))
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
