/**
 * What producers and operators do, from a seed: batches of events over several connections, a fifth of them sent again (also
 * with another timestamp or content), one in twenty late by days, meters created and changed on the way, events voided and
 * replaced. It knows nothing of kills: what has no acknowledgement is sent again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type ModelEvent, type ModelMeter, type ModelQuestion, usageByModel } from '../support/reference-model.ts';
import type { Chance } from '../support/seeds.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
export type Answer = { status: number; body: any };
export type Ask = (method: string, path: string, body?: unknown) => Promise<Answer>;

export type ChaosMeter = ModelMeter & { id: string; name: string };

const SENDERS = 3;
const DAY_MS = 86_400_000;
const FIRST = Date.parse('2026-03-10T00:00:00Z');
const LAST = Date.parse('2026-03-14T00:00:00Z');
const WHOLE: ModelQuestion = { start: '2026-02-28T00:00:00Z', end: '2026-03-15T00:00:00Z', window_size: 'DAY' };
const CUSTOMERS = ['acme', 'böhm', 'c', '日本'];
const FILTERS = [
  [],
  [{ key: 'region', values: ['eu', '1'] }],
  [
    { key: 'region', values: ['us', 'true'] },
    { key: 'host', values: ['h1', 'h2', '3'] },
  ],
];

export class Traffic {
  readonly meters: ChaosMeter[] = [];
  readonly counts = { events: 0, failed: 0, again: 0, late: 0, changed: 0, voided: 0, replaced: 0 };
  readonly #name: string;
  readonly #ask: Ask;
  readonly #chance: Chance;
  /** Acknowledged, by id, in the order of the acknowledgements; what a correction has made of it. */
  readonly #accepted = new Map<string, ModelEvent | null>();
  readonly #order: string[] = [];
  #unsent: ModelEvent[] = [];
  #made = 0;

  /** `name` keeps this traffic apart from any other on the same stage. */
  constructor(name: string, ask: Ask, chance: Chance) {
    this.#name = name;
    this.#ask = ask;
    this.#chance = chance;
  }

  /** Until the time is over, and then until everything is acknowledged. */
  async run(isOver: () => boolean): Promise<void> {
    const senders = Array.from({ length: SENDERS }, async () => {
      while (!isOver() || this.#unsent.length > 0) await this.#sendSome(isOver());
    });
    const meters = async () => {
      const planned = this.#chance.shuffled(plans(this.#name));
      for (const plan of planned.slice(0, 3)) await this.#create(plan);
      const rest = planned.slice(3);
      while (!isOver()) {
        await pause(this.#chance.whole(100, 1_500));
        if (rest.length > 0 && this.#chance.next() < 0.5) await this.#create(rest.shift()!);
        else await this.#change();
      }
    };
    const corrections = async () => {
      while (!isOver()) {
        await pause(this.#chance.whole(20, 200));
        await this.#correct();
      }
    };
    await Promise.all([...senders, meters(), corrections()]);
  }

  /** The first answer that differs from the model, as a text; nothing when all are equal. */
  async firstDifference(): Promise<string | undefined> {
    const events = this.#order.flatMap((id) => this.#accepted.get(id) ?? []);
    for (const meter of this.meters) {
      for (const question of [WHOLE, ...this.#raggedQuestions()]) {
        const difference = await this.#difference(meter, events, question);
        if (difference) return difference;
      }
    }
    return undefined;
  }

  async #difference(
    meter: ChaosMeter,
    events: readonly ModelEvent[],
    question: ModelQuestion,
  ): Promise<string | undefined> {
    const { start, end, customers, window_size } = question;
    const body = {
      meter_id: meter.id,
      start_time: start,
      end_time: end,
      external_customer_id: customers?.[0],
      window_size,
    };
    const answer = await this.#untilAnswered('POST', '/events/usage/meter', body, [200]);
    const expected = usageByModel(meter, events, question);
    const windows = expected.windows.map((window) => ({ window_size: window.start, value: window.value }));
    const wanted = { value: expected.value, event_count: expected.event_count, results: windows };
    const { value, event_count, results } = answer.body;
    const got = { value, event_count, results: results ?? [] };
    if (JSON.stringify(got) === JSON.stringify(wanted)) return undefined;
    return `${JSON.stringify({ meter, question })}\n  answered ${JSON.stringify(got)}\n  expected ${JSON.stringify(wanted)}`;
  }

  async #sendSome(isOver: boolean): Promise<void> {
    const missing = isOver ? 0 : this.#chance.whole(1, 120);
    const fresh = [...this.#unsent.splice(0, 60), ...Array.from({ length: missing }, () => this.#newEvent())];
    if (fresh.length === 0) return pause(20);
    const again = this.#again(Math.ceil(fresh.length / 5));
    const events = this.#chance.shuffled([...fresh, ...again]);
    if ((await this.#try('POST', '/events/bulk', { events }))?.status === 202) {
      for (const event of fresh) {
        this.#accepted.set(event.event_id, event);
        this.#order.push(event.event_id);
      }
      this.counts.events += fresh.length;
      this.counts.again += again.length;
    } else this.#unsent.push(...fresh);
    await pause(this.#chance.whole(5, 60));
  }

  #newEvent(): ModelEvent {
    const event = this.#event(`${this.#name}-${this.#made++}`);
    if (this.#chance.next() >= 0.05) return event;
    this.counts.late++;
    const late = Date.parse(event.timestamp) - this.#chance.whole(1, 9) * DAY_MS;
    return { ...event, timestamp: new Date(late).toISOString() };
  }

  /** Ids that were acknowledged before: as they were, with another timestamp, or with another content. */
  #again(count: number): ModelEvent[] {
    if (this.#order.length === 0) return [];
    return Array.from({ length: count }, () => {
      const id = this.#chance.oneOf(this.#order);
      const known = this.#accepted.get(id);
      const other = this.#event(id);
      const kind = this.#chance.next();
      if (!known || kind < 0.2) return other;
      return kind < 0.6 ? { ...known, timestamp: other.timestamp } : known;
    });
  }

  #event(id: string): ModelEvent {
    const event = randomEvent(this.#chance, id);
    return { ...event, event_name: `${event.event_name} ${this.#name}` };
  }

  async #create(plan: Omit<ChaosMeter, 'id'>): Promise<void> {
    for (;;) {
      const listed = await this.#untilAnswered('GET', '/meters?limit=1000', undefined, [200]);
      const made = listed.body.items.find((meter: ChaosMeter) => meter.name === plan.name);
      const id: string | undefined = made?.id ?? (await this.#try('POST', '/meters', plan))?.body?.id;
      if (id === undefined) continue;
      this.meters.push({ ...plan, id });
      return;
    }
  }

  async #change(): Promise<void> {
    const meter = this.#chance.oneOf(this.meters);
    const filters = this.#chance.oneOf(FILTERS.slice(1));
    await this.#untilAnswered('PUT', `/meters/${meter.id}`, { filters }, [200]);
    meter.filters = filters;
    this.counts.changed++;
  }

  async #correct(): Promise<void> {
    if (this.#order.length === 0) return;
    const id = this.#chance.oneOf(this.#order);
    if (this.#accepted.get(id) === null) return;
    if (this.#chance.next() < 0.6) {
      await this.#untilAnswered('POST', `/events/${id}/void`, { reason: 'chaos' }, [202]);
      this.#accepted.set(id, null);
      this.counts.voided++;
      return;
    }
    const event = this.#event(id);
    await this.#untilAnswered('POST', `/events/${id}/replace`, { reason: 'chaos', event }, [202]);
    this.#accepted.set(id, event);
    this.counts.replaced++;
  }

  async #untilAnswered(method: string, path: string, body: unknown, statuses: readonly number[]): Promise<Answer> {
    for (let tries = 0; ; tries++) {
      const answer = await this.#try(method, path, body);
      if (answer && statuses.includes(answer.status)) return answer;
      if (answer && answer.status < 500)
        throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await pause(Math.min(500, 20 * (tries + 1)));
    }
  }

  /** Nothing when there was no answer. */
  async #try(method: string, path: string, body?: unknown): Promise<Answer | undefined> {
    try {
      const answer = await this.#ask(method, path, body);
      if (answer.status < 500) return answer;
    } catch (error) {
      if (!isConnectionError(error)) throw error;
    }
    this.counts.failed++;
    await pause(20);
    return undefined;
  }

  #raggedQuestions(): ModelQuestion[] {
    const at = () => FIRST + this.#chance.whole(0, (LAST - FIRST) / 1000) * 1000 + this.#chance.whole(0, 999);
    return Array.from({ length: 2 }, () => {
      const [start, end] = [at(), at()].sort((a, b) => a - b) as [number, number];
      const range = { start: new Date(start).toISOString(), end: new Date(end + 60_000).toISOString() };
      return { ...range, customers: [this.#chance.oneOf(CUSTOMERS)] };
    });
  }
}

function isConnectionError(error: unknown): boolean {
  const { name, message } = error as Error;
  return (
    /TimeoutError|AbortError/.test(name) || (error instanceof TypeError && /fetch failed|terminated/.test(message))
  );
}

function plans(name: string): Omit<ChaosMeter, 'id'>[] {
  const aggregations: ModelMeter['aggregation'][] = [
    { type: 'COUNT' },
    { type: 'SUM', field: 'n' },
    { type: 'SUM', field: 'n', bucket_size: '15MIN' },
    { type: 'AVG', field: 'n' },
    { type: 'COUNT_UNIQUE', field: 'host' },
    { type: 'LATEST', field: 'n' },
    { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.003' },
    { type: 'MAX', field: 'n' },
    { type: 'MAX', field: 'n', bucket_size: 'HOUR', group_by: 'host' },
    { type: 'WEIGHTED_SUM', field: 'n' },
  ];
  return aggregations.map((aggregation, index) => ({
    name: `${aggregation.type} ${index} of ${name}`,
    event_name: index % 3 === 2 ? `job ${name}` : `call ${name}`,
    aggregation,
    filters: FILTERS[index % FILTERS.length]!,
    reset_usage: 'BILLING_PERIOD',
  }));
}

function randomEvent(chance: Chance, event_id: string): ModelEvent {
  const timestamp = new Date(FIRST + Math.floor(chance.next() * (LAST - FIRST))).toISOString();
  return {
    event_id,
    event_name: chance.oneOf(['call', 'call', 'job']),
    external_customer_id: chance.oneOf(CUSTOMERS),
    timestamp: timestamp.replace('Z', `${chance.whole(0, 999)}Z`),
    source: 'chaos',
    properties: {
      host: chance.oneOf(['h1', 'h2', 'h3', 3, '3', true, null]),
      region: chance.oneOf(['eu', 'us', 1, '1', true, null]),
      n: chance.oneOf<() => unknown>([
        () => chance.whole(-50, 5_000),
        () => `${chance.whole(0, 999)}.${chance.whole(0, 999_999)}`,
        () => chance.oneOf(['1e3', ' 7 ', '12345678901234567890.123456789', '.5', 'abc', null, true]),
      ])(),
    },
  };
}
