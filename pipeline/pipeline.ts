/** Starts and stops the whole pipeline: the processor, the relay of control messages, and the back-fills. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { moveOutboxEvents } from '../actions/metering/events/move-outbox-events.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { raiseAttempts } from '../storage/progress/attempts.ts';
import { backfillMeters } from './control/backfill.ts';
import { relayControlMessages } from './control/relay.ts';
import type { IdentityOptions } from './identity/identity-memory.ts';
import { type ProcessorOptions, startProcessor } from './processor.ts';

/** Identity settings of the pipeline from the configuration. */
export function identityOptions(config: {
  DATA_DIR: string;
  IDENTITY_HOT_IDS: number;
  IDENTITY_FILTER_MB: number;
}): IdentityOptions {
  const filter_bytes = config.IDENTITY_FILTER_MB * 1024 * 1024;
  return { dir: join(config.DATA_DIR, 'identities'), hot_ids: config.IDENTITY_HOT_IDS, filter_bytes };
}

type PipelineOptions = ProcessorOptions & { clock: () => Date };

export type RunningPipeline = { stop(): Promise<void> };

const ROUND_MS = 200;

export async function startPipeline(stores: Stores, options: PipelineOptions): Promise<RunningPipeline> {
  const { identities, logger } = options;
  const onRemade = (partition: number, why: string) =>
    logger.warn({ partition, why }, 'identity files were not trusted and are made again from ClickHouse');
  await raiseAttempts(stores);
  const processor = await startProcessor(stores, {
    ...options,
    identities: identities && { ...identities, onRemade },
  });
  // Separate loops: corrections and changes reach the log even if the back-fill of a meter takes long.
  const relay = new PipelineBatchLoop(() => relayControlMessages(stores, options.clock().getTime()), options.logger);
  const outbox = new PipelineBatchLoop(() => moveOutboxEvents(stores), options.logger);
  const backfills = new PipelineBatchLoop(
    () => backfillMeters(stores, { events_max: options.slice_events_max }),
    options.logger,
  );
  return {
    async stop() {
      await Promise.all([relay.stop(), outbox.stop(), backfills.stop()]);
      await processor.stop();
    },
  };
}

/** Repeats work with a pause between rounds, one round at a time; a failed round is logged and retried. */
class PipelineBatchLoop {
  #stopping = false;
  #wake: () => void = () => {};
  readonly #running: Promise<void>;

  constructor(work: () => Promise<unknown>, logger: Logger) {
    this.#running = this.#run(work, logger);
  }

  async #run(work: () => Promise<unknown>, logger: Logger): Promise<void> {
    while (!this.#stopping) {
      try {
        await work();
      } catch (error) {
        logger.warn({ err: error }, 'a chore of the pipeline failed and will be tried again');
      }
      if (!this.#stopping) await this.#pause();
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ROUND_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wake();
    await this.#running;
  }
}
