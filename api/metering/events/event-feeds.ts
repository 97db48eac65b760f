/**
 * Feeds the streams of new events. Each environment has one reader, however many streams listen: once a second it reads the progress of the
 * stores and, if it changed, a sample of the new events for each filter. Memory is bounded: a stream that is not read skips messages.
 */
import { FarthingError } from '../../../core/foundation/error.ts';
import { type Scope, scopeKey } from '../../../core/foundation/scope.ts';
import { deriveCountStatus } from '../../../core/metering/event/count-status.ts';
import { properties as propertiesIn } from '../../../core/metering/event-text.ts';
import { compileMeters } from '../../../core/metering/match.ts';
import {
  type EventSample,
  type NewOffsets,
  type SampleFilter,
  sampleEvents,
} from '../../../storage/events/sample-events.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { nextOffsets } from '../../../storage/progress/partition-progress.ts';
import { loadSharedProgress } from '../../../storage/progress/slices.ts';
import type { Services } from '../../http/services.ts';
import { formatEventJson } from './event-json.ts';

type FeedServices = Pick<Services, 'postgres' | 'clickhouse' | 'logger'>;

type FeedListener = {
  readonly filter: SampleFilter;
  /** Receives the JSON of a sample; returns false if it was skipped. */
  send(message: EventsMessage): boolean;
  fail(error: unknown): void;
};

/** Sampled events as JSON, the number of other events, and the rate of all, per second. */
export type EventsMessage = {
  readonly items: string;
  readonly item_count: number;
  readonly passed_over: number;
  readonly rate: string;
};

const READ_INTERVAL_MS = 1_000;
/** Maximum number of events in a message. */
const SAMPLE_SIZE = 20;
/** Maximum number of streams of an environment, and of their different filters, each of which adds to the statement. */
const LISTENERS_MAX = 200;
const FILTERS_MAX = 20;

const feeds = new WeakMap<Database, Map<string, EventFeed>>();

/** Adds a listener to the feed of its environment. The result removes it again. */
export function listenToEvents(services: FeedServices, scope: Scope, listener: FeedListener): () => void {
  let own = feeds.get(services.postgres);
  if (!own) feeds.set(services.postgres, (own = new Map()));
  const key = scopeKey(scope);
  const feed = own.get(key) ?? new EventFeed(services, scope);
  feed.add(listener);
  own.set(key, feed);
  return () => {
    feed.remove(listener);
    if (feed.isIdle && own.get(key) === feed) own.delete(key);
  };
}

class EventFeed {
  readonly #services: FeedServices;
  readonly #scope: Scope;
  readonly #listeners = new Map<FeedListener, { skipped: number; isQuiet: boolean }>();
  readonly #stop = new AbortController();
  #offsets: ReadonlyMap<number, bigint> | null = null;
  #read_ms = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(services: FeedServices, { tenant_id, environment_id }: Scope) {
    this.#services = services;
    this.#scope = { tenant_id, environment_id };
  }

  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  add(listener: FeedListener): void {
    const filters = new Set([...this.#listeners.keys(), listener].map(({ filter }) => toFilterKey(filter)));
    if (this.#listeners.size >= LISTENERS_MAX || filters.size > FILTERS_MAX)
      throw new FarthingError('too_many_requests', 'too many streams of events are open in this environment', {
        details: { streams_max: LISTENERS_MAX, filters_max: FILTERS_MAX },
      });
    this.#listeners.set(listener, { skipped: 0, isQuiet: true });
    if (this.#listeners.size === 1) void this.#read();
  }

  remove(listener: FeedListener): void {
    this.#listeners.delete(listener);
    if (!this.isIdle) return;
    clearTimeout(this.#timer);
    this.#stop.abort();
  }

  async #read(): Promise<void> {
    try {
      await this.#readNew();
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#services.logger.warn({ err: error, ...this.#scope }, 'new events could not be read; their streams end');
      for (const listener of [...this.#listeners.keys()]) listener.fail(error);
    }
    if (!this.#stop.signal.aborted) this.#timer = setTimeout(() => void this.#read(), READ_INTERVAL_MS).unref();
  }

  async #readNew(): Promise<void> {
    const offsets = nextOffsets(await loadSharedProgress(this.#services.postgres));
    const now = performance.now();
    const seconds = (now - this.#read_ms) / 1_000;
    const ranges = this.#offsets === null ? [] : listNewRanges(this.#offsets, offsets);
    const filters = [
      ...new Map([...this.#listeners.keys()].map(({ filter }) => [toFilterKey(filter), filter])).values(),
    ];
    const samples = ranges.length === 0 ? [] : await this.#sample(ranges, filters);
    const messages = ranges.length === 0 ? [] : await this.#buildMessages(samples, seconds);
    this.#offsets = offsets;
    this.#read_ms = now;
    const byFilter = new Map(filters.map((filter, index) => [toFilterKey(filter), messages[index] ?? NO_EVENTS]));
    for (const [listener, state] of this.#listeners) {
      const message = byFilter.get(toFilterKey(listener.filter));
      if (message) deliver(listener, state, message);
    }
  }

  #sample(ranges: readonly NewOffsets[], filters: readonly SampleFilter[]): Promise<EventSample[]> {
    const { tenant_id } = this.#scope;
    const bounds = { asker: tenant_id, signal: this.#stop.signal, spent: { work: 0 } };
    return sampleEvents(this.#services.clickhouse, this.#scope, { ranges, filters, sample_size: SAMPLE_SIZE, bounds });
  }

  async #buildMessages(samples: readonly EventSample[], seconds: number): Promise<EventsMessage[]> {
    if (samples.every(({ event_count }) => event_count === 0)) return [];
    const meters = await MeterModel.in(this.#scope, this.#services.postgres).where({ status: 'published' });
    const index = compileMeters(meters);
    return samples.map(({ events, event_count }) => ({
      items: events.map((event) => this.#formatItem(event, index)).join(','),
      item_count: events.length,
      passed_over: event_count - events.length,
      rate: (event_count / seconds).toFixed(1),
    }));
  }

  #formatItem(event: EventSample['events'][number], meters: ReturnType<typeof compileMeters>): string {
    const status = deriveCountStatus(meters, { ...event, properties: propertiesIn(event.properties) });
    return `{"status":"${status}",${formatEventJson(event, this.#scope).slice(1)}`;
  }
}

const NO_EVENTS: EventsMessage = { items: '', item_count: 0, passed_over: 0, rate: '0.0' };

/** After the last events one message states that the rate is 0. A skipped message is added to the count of the next. */
function deliver(listener: FeedListener, state: { skipped: number; isQuiet: boolean }, message: EventsMessage): void {
  const isEmpty = message.item_count + message.passed_over === 0;
  if (isEmpty && state.isQuiet) return;
  if (listener.send({ ...message, passed_over: message.passed_over + state.skipped })) {
    state.skipped = 0;
    state.isQuiet = isEmpty;
  } else state.skipped += message.item_count + message.passed_over;
}

function toFilterKey({ event_name, external_customer_id }: SampleFilter): string {
  return JSON.stringify([event_name, external_customer_id]);
}

/** A partition without an earlier offset was added since, and is new from its first record on. */
function listNewRanges(before: ReadonlyMap<number, bigint>, after: ReadonlyMap<number, bigint>): NewOffsets[] {
  return [...after]
    .map(([partition, to]) => ({ partition, from: before.get(partition) ?? 0n, to }))
    .filter(({ from, to }) => to > from);
}
