/**
 * Detects a topic that ends before the offset that was read. Kafka returns nothing for an offset after the end. So after any event that may
 * have replaced the topic, the ends must be checked.
 */
import { checkBounds } from '../continuity.ts';
import type { PartitionBounds } from './admin.ts';

/** A partition whose loop waits for records. */
type WaitingPartition = {
  readonly partition: number;
  readonly stored_until: bigint;
  readonly read_from: bigint;
  readonly fail: ((error: Error) => void) | null;
};

type KafkaEndsOptions = {
  bounds(): Promise<readonly PartitionBounds[]>;
  /** Partitions that wait now; null if the consumer is stopping. */
  waiting(): readonly WaitingPartition[] | null;
};

type Short = { readonly of: WaitingPartition; readonly read_from: bigint; readonly error: Error };

const PAUSE_MS = 1_000;

export class KafkaEnds {
  readonly #options: KafkaEndsOptions;
  #isChecking = false;

  constructor(options: KafkaEndsOptions) {
    this.#options = options;
  }

  check(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    void this.#check().finally(() => {
      this.#isChecking = false;
    });
  }

  /** Checks twice: a new leader may briefly not know how far its records are acknowledged. */
  async #check(): Promise<void> {
    const before = await this.#tooShort();
    if (before.length === 0) return;
    await pause();
    for (const { of, read_from, error } of await this.#tooShort())
      if (before.some((short) => short.of === of && short.read_from === read_from)) of.fail?.(error);
  }

  async #tooShort(): Promise<Short[]> {
    for (;;) {
      const waiting = this.#options.waiting();
      if (!waiting) return [];
      // The positions are read before the ends, so that no record that is read meanwhile lies after its end.
      const positions = waiting.map((of) => ({ of, read_from: of.read_from, stored_until: of.stored_until }));
      try {
        const ends = new Map((await this.#options.bounds()).map((each) => [each.partition, each]));
        return positions.flatMap((position) => tooShort(position, ends.get(position.of.partition)));
      } catch {
        await pause(); // Kafka or the topic is unavailable: the check is repeated.
      }
    }
  }
}

function tooShort(
  { of, read_from, stored_until }: { of: WaitingPartition; read_from: bigint; stored_until: bigint },
  bounds: PartitionBounds | undefined,
): Short[] {
  try {
    if (bounds) checkBounds(of.partition, { next_offset: stored_until, min_end_offset: read_from }, bounds);
    return [];
  } catch (error) {
    return [{ of, read_from, error: error as Error }];
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS).unref());
}
