/**
 * The identity of an event is (tenant_id, environment_id, event_id), for the life of the data (docs/rules/identity.md,
 * "One effect per id"). A 64-bit hash assigns it permanently to one of a fixed number of shards. Shards map to partitions
 * of the log in contiguous ranges. An id therefore meets its duplicates on one partition, and whole ranges move if
 * partitions are added.
 */
import type { Scope } from '../../foundation/scope.ts';

/** Number of shards. It can never change, because the assignment of ids to shards depends on it. */
const SHARD_COUNT = 4096;

/** Hashes ids of one scope; the text of the scope is hashed once. */
export class IdentityHasher {
  readonly #seedHigh: number;
  readonly #seedLow: number;
  /** Halves of the last hash. They are fields, so that no object is created per event. */
  high = 0;
  low = 0;

  constructor(scope: Scope) {
    this.#seedHigh = 0xdeadbeef;
    this.#seedLow = 0x41c6ce57;
    const text = `${scope.tenant_id}/${scope.environment_id}/`;
    this.#absorb(text, 0, text.length);
    this.#seedHigh = this.high;
    this.#seedLow = this.low;
  }

  hash(eventId: string): void {
    this.hashRange(eventId, 0, eventId.length);
  }

  /** Hashes an id inside a longer text. */
  hashRange(text: string, start: number, end: number): void {
    this.#absorb(text, start, end);
    this.#finish();
  }

  #absorb(text: string, start: number, end: number): void {
    let high = this.#seedHigh;
    let low = this.#seedLow;
    for (let at = start; at < end; at++) {
      const unit = text.charCodeAt(at);
      high = Math.imul(high ^ unit, 2654435761);
      low = Math.imul(low ^ unit, 1597334677);
      high ^= high >>> 15;
      low ^= low >>> 13;
    }
    this.high = high;
    this.low = low;
  }

  #finish(): void {
    let { high, low } = this;
    high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
    low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
    this.high = high >>> 0;
    this.low = low >>> 0;
  }
}

export function toShard(high: number): number {
  return high >>> 20;
}

export function toPartition(shard: number, partitionCount: number): number {
  return Math.floor((shard * partitionCount) / SHARD_COUNT);
}

/** First and last shard of the partition, both inclusive. */
export function toShardRange(partition: number, partitionCount: number): { first: number; last: number } {
  const first = Math.ceil((partition * SHARD_COUNT) / partitionCount);
  const last = Math.ceil(((partition + 1) * SHARD_COUNT) / partitionCount) - 1;
  return { first, last };
}

export function hashToBigInt(high: number, low: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

/** Number of hashes and their sum modulo 2^64, which does not depend on the order. ClickHouse's `sum` of UInt64 gives this sum too. */
export class HashSum {
  count = 0;
  #high = 0;
  #low = 0;

  add(high: number, low: number): void {
    this.count++;
    this.#low += low;
    this.#high += high;
    if (this.#low >= 4294967296) {
      this.#low -= 4294967296;
      this.#high++;
    }
    if (this.#high >= 4294967296) this.#high -= 4294967296;
  }

  get sum(): bigint {
    return hashToBigInt(this.#high, this.#low);
  }
}

/** Hashes a single id. For many ids of one scope, use one `IdentityHasher`. */
export function hashIdentity({ event_id, ...scope }: Scope & { readonly event_id: string }): bigint {
  const hasher = new IdentityHasher(scope);
  hasher.hash(event_id);
  return hashToBigInt(hasher.high, hasher.low);
}
