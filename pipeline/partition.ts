/**
 * One partition in our hands: takes slices of the log in order and gives each its effect exactly once.
 *
 *   plan → read → dedupe → meter → write raw events → write buckets → done
 *
 * The plan is recorded first; after a crash the slice is run again with the same bounds and the same tokens, so what was
 * written is not written twice. A worker that lost the partition is fenced by its epoch (storage/slices.ts), and one that
 * was frozen by the deadline of its inserts (storage/events/rows.ts).
 */
import { unavailable } from '../core/error.ts';
import { shardsOfPartition } from '../core/event/identity.ts';
import { type BucketRow, withDayRows } from '../core/metering/plan.ts';
import { eachIdentityHash } from '../storage/events/identities.ts';
import { EngineClock, tooLate, writeRows } from '../storage/events/rows.ts';
import {
  EVENT_IDENTITIES,
  EVENT_OUTCOMES,
  EVENTS,
  type EventOutcome,
  type RowTarget,
  usageBuckets,
} from '../storage/events/tables.ts';
import { installationId } from '../storage/installation.ts';
import type { LogRecord } from '../storage/log/log.ts';
import { type PoisonPlace, poisonFrom } from '../storage/poison.ts';
import {
  enterBuckets,
  finishSlice,
  planSlice,
  type SlicePlan,
  type SliceState,
  takePartition,
} from '../storage/slices.ts';
import type { Stores } from '../storage/stores.ts';
import { passControl } from './control.ts';
import { EXACT_ONLY, IdentityMemory, type IdentityOptions, type ReadIdentities } from './identity-memory.ts';
import { rebuildSlice, writeMissingRows } from './late-slice.ts';
import { MeterCatalogue } from './meter-catalogue.ts';
import { pipelineMetrics } from './metrics.ts';
import { findPoison, poisonOutcome, setAside } from './poison.ts';
import { dedupe } from './steps/dedupe.ts';
import { meterEvents } from './steps/meter-events.ts';
import { EventReader, type ReadEvent, type ReadResult } from './steps/read-events.ts';

/** Well inside the time that the deduplication windows of the tables cover. */
const WRITE_WITHIN_S = 60;

/** Counted from the first try of a slice: the tables remember some thousands of blocks, which is minutes at full speed. */
const TOKENS_TRUSTED_S = 60;

/** What a slice adds up to: everything that is written, in the order in which it is written. */
export type PreparedSlice = {
  readonly from: bigint;
  readonly to: bigint;
  readonly watermark_us: number;
  readonly events: readonly ReadEvent[];
  readonly outcomes: readonly EventOutcome[];
  /** Dead letters of events that an earlier try found to be refused: they are not in what that try wrote. */
  readonly poisoned: readonly EventOutcome[];
  readonly buckets: readonly BucketRow[];
};

export class Partition {
  readonly partition: number;
  readonly #stores: Stores;
  readonly #state: SliceState;
  readonly #seen: IdentityMemory;
  #catalogue: MeterCatalogue;
  #next: bigint;
  readonly #clock: EngineClock;
  readonly #reader = new EventReader();
  /** Why the stores refuse an event, by its place: it is read as a dead letter. */
  readonly #poison: Map<string, string>;

  /** Takes the partition over and rebuilds what is kept in memory for it. */
  static async take(
    stores: Stores,
    partition: number,
    { owner, identities = EXACT_ONLY }: { owner: string; identities?: IdentityOptions | undefined },
  ): Promise<Partition> {
    const state = await takePartition(stores.postgres, partition, owner);
    const clock = new EngineClock();
    await clock.synchronise(stores.clickhouse);
    const seen = await identitiesOf(stores, state, identities);
    const catalogue = await MeterCatalogue.at(stores.postgres, partition, state.next_offset);
    const poison = await poisonFrom(stores.postgres, partition, state.next_offset);
    return new Partition(stores, { state, seen, catalogue, clock, poison });
  }

  private constructor(
    stores: Stores,
    parts: {
      state: SliceState;
      seen: IdentityMemory;
      catalogue: MeterCatalogue;
      clock: EngineClock;
      poison: readonly PoisonPlace[];
    },
  ) {
    this.#stores = stores;
    this.#state = parts.state;
    this.partition = parts.state.partition;
    this.#seen = parts.seen;
    this.#catalogue = parts.catalogue;
    this.#clock = parts.clock;
    this.#next = parts.state.next_offset;
    this.#poison = new Map(parts.poison.map((poison) => [placeOf(poison), poison.reason]));
  }

  /** Everything before it is in the stores. */
  get next_offset(): bigint {
    return this.#next;
  }

  /** The bounds of a slice that a crash left half done; it is run again before anything else. */
  get unfinished(): { from: bigint; to: bigint } | null {
    const { slice_from, slice_to } = this.#state;
    return slice_from !== null && slice_to !== null && this.#next <= slice_from
      ? { from: slice_from, to: slice_to }
      : null;
  }

  get identities(): { count: number; bytes: number } {
    return { count: this.#seen.size, bytes: this.#seen.bytes };
  }

  /** Between slices: old ids move from memory to the disk. */
  async settle(): Promise<void> {
    await this.#seen.settle(this.#next);
  }

  /** Nothing is taken in hand any more. */
  close(): void {
    this.#seen.close();
  }

  /** A control message takes effect alone, at its offset; answers what it could not do. */
  async passControl(record: LogRecord): Promise<Error | null> {
    const { to, problem = null } = await passControl(this.#stores, { state: this.#state, clock: this.#clock }, record);
    this.#next = to;
    this.#catalogue = await MeterCatalogue.at(this.#stores.postgres, this.partition, to);
    return problem;
  }

  /** The plan, and what the slice comes to. Nothing is written to ClickHouse yet. */
  async prepare(records: readonly LogRecord[]): Promise<PreparedSlice> {
    const from = records[0]!.offset;
    const to = records.at(-1)!.offset + 1n;
    await planSlice(this.#stores.postgres, this.#state, { from, to });
    const { poisoned, ...read } = this.#withoutPoison(this.#reader.read(records));
    const { accepted, repeats } = await dedupe(this.#stores.clickhouse, this.#seen, read.events);
    const metered = meterEvents(accepted, (scope) => this.#catalogue.metersOf(scope));
    pipelineMetrics.count({ read, accepted: accepted.length, repeats, metered });
    return {
      from,
      to,
      watermark_us: records.reduce((latest, record) => Math.max(latest, record.received_at_us), 0),
      events: accepted,
      outcomes: [...read.dead, ...repeats, ...metered.unusable],
      poisoned,
      buckets: metered.buckets,
    };
  }

  /** Writes a prepared slice; may be called again after a failure, with the same effect. */
  async write(slice: PreparedSlice): Promise<void> {
    const deadline_s = this.#clock.now_s() + WRITE_WITHIN_S;
    const plan = await planSlice(this.#stores.postgres, this.#state, { ...slice, write_until: deadline_s });
    const letters = [...slice.outcomes, ...slice.poisoned].filter(({ outcome }) => outcome === 'dead_letter');
    if (letters.length > 0) await this.#stores.log.tellDeadLetters?.(letters);
    if (plan.age_s < TOKENS_TRUSTED_S) await this.#writeOnce(slice, deadline_s);
    else await this.#writeLate(slice, plan, deadline_s);
    this.#next = slice.to;
  }

  async #writeOnce(slice: PreparedSlice, deadline_s: number): Promise<void> {
    const token = `${this.partition}:${slice.from}:${slice.to}`;
    const put = <Row>(target: RowTarget<Row>, rows: readonly Row[], own = '') =>
      writeRows(this.#stores.clickhouse, target, { rows, fence: { token: `${token}${own}`, deadline_s } });
    await allOf([
      put(EVENTS, slice.events),
      put(EVENT_IDENTITIES, slice.events),
      put(EVENT_OUTCOMES, slice.outcomes),
      put(EVENT_OUTCOMES, slice.poisoned, `:poisoned:${slice.poisoned.length}`),
    ]);
    this.#checkDeadline(deadline_s, 'events');
    const { days_before } = await enterBuckets(this.#stores.postgres, this.#state);
    await put(
      usageBuckets((meterId) => this.#catalogue.versionOf(meterId)),
      withDayRows(slice.buckets, days_before),
    );
    this.#checkDeadline(deadline_s, 'usage_buckets');
    await finishSlice(this.#stores.postgres, this.#state, { next_offset: slice.to, watermark_us: slice.watermark_us });
  }

  /** The tables may have forgotten the tokens of the first try. */
  async #writeLate(slice: PreparedSlice, plan: SlicePlan, deadline_s: number): Promise<void> {
    const { earlier_until_s } = plan;
    if (earlier_until_s !== null && this.#clock.now_s() <= earlier_until_s) {
      // This try has written nothing: the next one waits for the earlier ones alone.
      await planSlice(this.#stores.postgres, this.#state, { ...slice, write_until: earlier_until_s });
      throw unavailable(`the usage store (slice ${slice.from} of partition ${this.partition} may still arrive)`);
    }
    const versionOf = (meterId: string) => this.#catalogue.versionOf(meterId);
    const late = { state: this.#state, clock: this.#clock, slice, versionOf };
    const check = (table: string) => this.#checkDeadline(deadline_s, table);
    await writeMissingRows(this.#stores, late, { s: deadline_s, check });
    if (plan.phase === 'buckets') return rebuildSlice(this.#stores, late);
    // It never came to its bucket rows: their token was not used.
    await this.#writeOnce({ ...slice, events: [], outcomes: [], poisoned: [] }, deadline_s);
  }

  /** After a refusal of the stores: sets aside the events that are to blame; false when none is. */
  async isolate(records: readonly LogRecord[]): Promise<boolean> {
    const { events } = this.#withoutPoison(this.#reader.read(records));
    const found = await findPoison(this.#stores, this.#catalogue, events);
    for (const poison of found) {
      await setAside(this.#stores, this.partition, poison);
      this.#poison.set(placeOf(poison), poison.reason);
    }
    return found.length > 0;
  }

  #withoutPoison(read: ReadResult): ReadResult & { poisoned: EventOutcome[] } {
    if (this.#poison.size === 0) return { ...read, poisoned: [] };
    const reasonOf = (event: ReadEvent) => this.#poison.get(placeOf(event));
    const refused = read.events.filter((event) => reasonOf(event) !== undefined);
    const poisoned = refused.map((event) => poisonOutcome(event, reasonOf(event)!));
    return { events: read.events.filter((event) => reasonOf(event) === undefined), dead: read.dead, poisoned };
  }

  /** An insert after the deadline writes nothing and says nothing: only what ended before it is certain. */
  #checkDeadline(deadline_s: number, table: string): void {
    if (this.#clock.now_s() >= deadline_s) throw tooLate(table);
  }
}

/** Like Promise.all, and nothing is on its way any more when it fails. */
async function allOf(writes: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(writes);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

function placeOf({ offset, position }: { offset: number; position: number }): string {
  return `${offset}.${position}`;
}

async function identitiesOf(
  stores: Stores,
  { partition, next_offset: next }: SliceState,
  options: IdentityOptions,
): Promise<IdentityMemory> {
  const { partition_count } = stores.log;
  const shards = shardsOfPartition(partition, partition_count);
  const range = { first: BigInt(shards.first) << 52n, last: ((BigInt(shards.last) + 1n) << 52n) - 1n };
  const read: ReadIdentities = (from, visit) =>
    eachIdentityHash(stores.clickhouse, from === 0n ? range : { ...range, behind: { partition, offset: from } }, visit);
  const installation = await installationId(stores.postgres);
  return IdentityMemory.open(options, { partition, partition_count, installation }, { next, read });
}
