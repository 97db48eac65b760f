/**
 * Whether a topic ends before what was read of it. A consumer that asks for a record behind the end is told nothing, so after
 * anything that may have been a topic made anew, somebody has to look.
 */
import { checkBounds } from '../continuity.ts';
import type { PartitionBounds } from './admin.ts';

/** A partition whose loop waits for records. */
export type WaitingPartition = {
  readonly partition: number;
  readonly stored_until: bigint;
  readonly read_from: bigint;
  readonly fail: ((error: Error) => void) | null;
};

type KafkaEndsOptions = {
  bounds(): Promise<readonly PartitionBounds[]>;
  /** Those who wait now; null when the consumer is stopping. */
  waiting(): readonly WaitingPartition[] | null;
};

type Short = { readonly of: WaitingPartition; readonly read_from: bigint; readonly error: Error };

const PAUSE_MS = 1_000;

export class KafkaEnds {
  readonly #options: KafkaEndsOptions;
  #looking = false;

  constructor(options: KafkaEndsOptions) {
    this.#options = options;
  }

  check(): void {
    if (this.#looking) return;
    this.#looking = true;
    void this.#check().finally(() => {
      this.#looking = false;
    });
  }

  /** Twice: a new leader may for a moment not know how far its records are acknowledged. */
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
      // Before the ends are asked for: what is read meanwhile is behind none of them.
      const places = waiting.map((of) => ({ of, read_from: of.read_from, stored_until: of.stored_until }));
      try {
        const ends = new Map((await this.#options.bounds()).map((each) => [each.partition, each]));
        return places.flatMap((place) => tooShort(place, ends.get(place.of.partition)));
      } catch {
        await pause(); // Kafka is away, or the topic is: then the look is still to come.
      }
    }
  }
}

function tooShort(
  { of, read_from, stored_until }: { of: WaitingPartition; read_from: bigint; stored_until: bigint },
  bounds: PartitionBounds | undefined,
): Short[] {
  try {
    if (bounds) checkBounds(of.partition, { next_offset: stored_until, seen_until: read_from }, bounds);
    return [];
  } catch (error) {
    return [{ of, read_from, error: error as Error }];
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS).unref());
}
