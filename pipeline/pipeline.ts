/** Starts and stops the whole pipeline: the processor, the relay of control messages, and the back-fills. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { moveOutboxEvents } from '../actions/metering/events/move-outbox-events.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { listen } from '../storage/postgres/pool/listen.ts';
import { readUrl } from '../storage/postgres/pool/postgres.ts';
import { raiseAttempts } from '../storage/progress/attempts.ts';
import { OUTBOX_CHANNEL } from '../storage/progress/outbox.ts';
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

/** Pause after a round that found work, so that work which arrives meanwhile is done in one round. */
const ROUND_MS = 200;
/** Longest pause after a round without work. A notification that was lost, or a process that died, delays work by at most this time. */
const IDLE_ROUND_MS = 5_000;

export async function startPipeline(stores: Stores, options: PipelineOptions): Promise<RunningPipeline> {
  const { identities, logger } = options;
  const onRemade = (partition: number, why: string) =>
    logger.warn({ partition, why }, 'identity files were not trusted and are made again from ClickHouse');
  await raiseAttempts(stores);
  // Separate loops: corrections and changes reach the log even if the back-fill of a meter takes long.
  const relay = new PipelineBatchLoop(
    async () => (await relayControlMessages(stores, options.clock().getTime())) > 0,
    logger,
  );
  const outbox = new PipelineBatchLoop(async () => (await moveOutboxEvents(stores, logger)) > 0, logger);
  const backfills = new PipelineBatchLoop(
    () => backfillMeters(stores, { events_max: options.slice_events_max }),
    logger,
  );
  const processor = await startProcessor(stores, {
    ...options,
    identities: identities && { ...identities, onRemade },
    onControlMessage: () => backfills.wake(),
  });
  relay.start();
  outbox.start();
  backfills.start();
  const messages = listen(readUrl(stores.postgres), {
    channel: OUTBOX_CHANNEL,
    heard: () => relay.wake(),
    begun: () => relay.wake(),
    lost: (error) => logger.warn({ err: error }, 'messages of the outbox are not heard: they are relayed within 5 s'),
  });
  return {
    async stop() {
      await Promise.all([messages.close(), relay.stop(), outbox.stop(), backfills.stop()]);
      await processor.stop();
    },
  };
}

/**
 * Repeats work, one round at a time. After a round without work it pauses until it is woken; a failed round is logged and retried.
 */
class PipelineBatchLoop {
  readonly #work: () => Promise<boolean>;
  readonly #logger: Logger;
  #stopping = false;
  #isWoken = false;
  #isIdle = false;
  #endPause: () => void = () => {};
  #running: Promise<void> | undefined;

  constructor(work: () => Promise<boolean>, logger: Logger) {
    this.#work = work;
    this.#logger = logger;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Ends a pause that follows a round without work, also if that round is not over yet. */
  wake(): void {
    this.#isWoken = true;
    if (this.#isIdle) this.#endPause();
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      this.#isWoken = false;
      const hasWorked = await this.#runRound();
      if (this.#stopping) return;
      this.#isIdle = !hasWorked;
      if (hasWorked) await this.#pause(ROUND_MS);
      else if (!this.#isWoken) await this.#pause(IDLE_ROUND_MS);
    }
  }

  /** Returns whether there was work, or may still be. */
  async #runRound(): Promise<boolean> {
    try {
      return await this.#work();
    } catch (error) {
      this.#logger.warn({ err: error }, 'a chore of the pipeline failed and will be tried again');
      return true;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#endPause();
    await this.#running;
  }
}
