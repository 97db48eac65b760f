/** Commits the offsets of the stores to the group. The stores have the authoritative offsets; the commits only show progress to others. */
import type { Consumer } from 'kafkajs';
import type { Logger } from 'pino';

type KafkaCommitsOptions = {
  readonly topic: string;
  readonly logger: Logger | undefined;
  /** The current consumer. */
  consumer(): Consumer | null;
  isStopping(): boolean;
  pause(ms: number): Promise<void>;
};

export class KafkaCommits {
  readonly #options: KafkaCommitsOptions;
  readonly #uncommitted = new Map<number, bigint>();
  /** Partitions that this consumer owns; commits of other partitions are not sent. */
  readonly #own = new Set<number>();
  #committing: Promise<void> | null = null;

  constructor(options: KafkaCommitsOptions) {
    this.#options = options;
  }

  later(partition: number, stored_until: bigint): void {
    this.#own.add(partition);
    this.#uncommitted.set(partition, stored_until);
    this.#committing ??= this.#commit().finally(() => {
      this.#committing = null;
    });
  }

  discard(partition: number): void {
    this.#own.delete(partition);
    this.#uncommitted.delete(partition);
  }

  /** Resolves when no commit is in flight. */
  async waitForCommits(): Promise<void> {
    await this.#committing;
  }

  /** One request commits several partitions. */
  async #commit(): Promise<void> {
    const { topic, logger } = this.#options;
    await Promise.resolve(); // The commit includes the offsets that other loops commit in the same tick.
    while (this.#uncommitted.size > 0) {
      const taken = [...this.#uncommitted];
      this.#uncommitted.clear();
      try {
        await this.#options
          .consumer()!
          .commitOffsets(taken.map(([partition, next]) => ({ topic, partition, offset: String(next) })));
      } catch (error) {
        logger?.info({ err: error }, 'a commit to the event log failed');
        if (this.#options.isStopping()) return;
        await this.#options.pause(500);
        for (const [partition, next] of taken)
          if (this.#own.has(partition) && !this.#uncommitted.has(partition)) this.#uncommitted.set(partition, next);
      }
    }
  }
}
