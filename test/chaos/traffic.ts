/**
 * What producers and operators do, from a seed: batches of events and single ones over several connections, a fifth of them sent again (also
 * with another timestamp or content), one in twenty late by days, some of old months, meters created and changed on the way, events voided and
 * replaced. It knows nothing of kills: what has no acknowledgement is sent again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  Decimal,
  eventsInEffect,
  type ModelEntry,
  type ModelEvent,
  type ModelMeter,
  type ModelQuestion,
  type ModelWindow,
  usageByModel,
} from '../support/reference-model.ts';
import type { Chance } from '../support/seeds.ts';
import type { Client } from './client.ts';

export type ChaosMeter = ModelMeter & { id: string; name: string; reset_usage: 'BILLING_PERIOD' | 'NEVER' };

const SENDERS = 3;
const DAY_MS = 86_400_000;
const FIRST = Date.parse('2026-03-10T00:00:00Z');
const LAST = Date.parse('2026-03-14T00:00:00Z');
const WHOLE: ModelQuestion = { start: '2026-02-28T00:00:00Z', end: '2026-03-15T00:00:00Z', window_size: 'DAY' };
/** What comes for months that were over long ago. */
const OLD: ModelQuestion = { start: '2021-01-01T00:00:00Z', end: '2026-02-01T00:00:00Z', window_size: 'MONTH' };
/** How many of the requests are of one event. */
const SINGLY = 0.25;
const TIMEZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata'];
const WINDOWS: ModelWindow[] = ['HOUR', '6HOUR', 'DAY', 'WEEK', 'MONTH'];
export const CUSTOMERS = ['acme', 'böhm', 'c', '日本'];
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
  /** What was acknowledged, in the order of the acknowledgements. */
  readonly accepted: ModelEntry[] = [];
  readonly counts = { events: 0, singly: 0, again: 0, late: 0, old: 0, changed: 0, voided: 0, replaced: 0 };
  readonly name: string;
  readonly #client: Client;
  readonly #chance: Chance;
  /** Acknowledged, by id; what a correction has made of it. */
  readonly #known = new Map<string, ModelEvent | null>();
  readonly #ids: string[] = [];
  #unsent: ModelEvent[] = [];
  #made = 0;

  /** `name` keeps this traffic apart from any other on the same stage. */
  constructor(name: string, client: Client, chance: Chance) {
    this.name = name;
    this.#client = client;
    this.#chance = chance;
  }

  /** Until the time is over, and then until everything is acknowledged. */
  async run(isOver: () => boolean): Promise<void> {
    const senders = Array.from({ length: SENDERS }, async () => {
      while (!isOver() || this.#unsent.length > 0) await this.#sendSome(isOver());
    });
    const meters = async () => {
      const planned = this.#chance.shuffled(plans(this.name));
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
    const events = eventsInEffect(this.accepted);
    for (const meter of this.meters) {
      const questions = [WHOLE, OLD, ...this.#raggedQuestions()];
      const differences = await Promise.all(questions.map((question) => this.#difference(meter, events, question)));
      const difference = differences.find((found) => found !== undefined);
      if (difference) return difference;
    }
    return undefined;
  }

  async #difference(
    meter: ChaosMeter,
    events: readonly ModelEvent[],
    question: ModelQuestion,
  ): Promise<string | undefined> {
    const { start, end, customers, window_size, timezone } = question;
    const body = {
      meter_id: meter.id,
      start_time: start,
      end_time: end,
      external_customer_id: customers?.[0],
      window_size,
      timezone,
    };
    const answer = await this.#client.untilAnswered('POST', '/events/usage/meter', { body });
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
    // Small records make long slices of another kind: one request and one record for each event.
    if (this.#chance.next() < SINGLY) await this.#sendSingly(fresh, again);
    else await this.#sendTogether(fresh, again);
    await pause(this.#chance.whole(5, 60));
  }

  async #sendTogether(fresh: readonly ModelEvent[], again: readonly ModelEvent[]): Promise<void> {
    const events = this.#chance.shuffled([...fresh, ...again]);
    const answer = await this.#client.try('POST', '/events/bulk', { events });
    if (answer?.status !== 202) return void this.#unsent.push(...fresh);
    for (const event of fresh) this.#acknowledged(event);
    this.counts.again += again.length;
  }

  async #sendSingly(fresh: readonly ModelEvent[], again: readonly ModelEvent[]): Promise<void> {
    const send = async (event: ModelEvent) => (await this.#client.try('POST', '/events', event))?.status === 202;
    await Promise.all([
      ...fresh.map(async (event) => {
        if (!(await send(event))) return void this.#unsent.push(event);
        this.#acknowledged(event);
        this.counts.singly++;
      }),
      ...again.map(async (event) => {
        if (await send(event)) this.counts.again++;
      }),
    ]);
  }

  #acknowledged(event: ModelEvent): void {
    this.accepted.push(event);
    this.#known.set(event.event_id, event);
    this.#ids.push(event.event_id);
    this.counts.events++;
  }

  #newEvent(): ModelEvent {
    const event = this.#event(`${this.name}-${this.#made++}`);
    const kind = this.#chance.next();
    if (kind < 0.02) {
      // Of a month of the last five years.
      this.counts.old++;
      const old =
        Date.parse(OLD.start) + Math.floor(this.#chance.next() * (Date.parse(OLD.end) - Date.parse(OLD.start)));
      return { ...event, timestamp: new Date(old).toISOString() };
    }
    if (kind >= 0.07) return event;
    this.counts.late++;
    const late = Date.parse(event.timestamp) - this.#chance.whole(1, 9) * DAY_MS;
    return { ...event, timestamp: new Date(late).toISOString() };
  }

  /** Ids that were acknowledged before: as they were, with another timestamp, or with another content. */
  #again(count: number): ModelEvent[] {
    if (this.#ids.length === 0) return [];
    return Array.from({ length: count }, () => {
      const id = this.#chance.pick(this.#ids);
      const known = this.#known.get(id);
      const other = this.#event(id);
      const kind = this.#chance.next();
      if (!known || kind < 0.2) return other;
      return kind < 0.6 ? { ...known, timestamp: other.timestamp } : known;
    });
  }

  #event(id: string): ModelEvent {
    const event = randomEvent(this.#chance, id);
    return { ...event, event_name: `${event.event_name} ${this.name}` };
  }

  async #create(plan: Omit<ChaosMeter, 'id'>): Promise<void> {
    const find = async (): Promise<ChaosMeter | undefined> => {
      const listed = await this.#client.untilAnswered('GET', '/meters?limit=1000');
      return listed.body.items.find((meter: ChaosMeter) => meter.name === plan.name);
    };
    const { id } = await this.#client.make(find, '/meters', plan);
    this.meters.push({ ...plan, id });
  }

  async #change(): Promise<void> {
    const meter = this.#chance.pick(this.meters);
    const filters = this.#chance.pick(FILTERS.slice(1));
    await this.#client.untilAnswered('PUT', `/meters/${meter.id}`, { body: { filters } });
    meter.filters = filters;
    this.counts.changed++;
  }

  async #correct(): Promise<void> {
    if (this.#ids.length === 0) return;
    const id = this.#chance.pick(this.#ids);
    if (this.#known.get(id) === null) return;
    const asked = async (verb: string, body: unknown) =>
      this.#client.untilAnswered('POST', `/events/${encodeURIComponent(id)}/${verb}`, { body, statuses: [202] });
    if (this.#chance.next() < 0.6) {
      await asked('void', { reason: 'chaos' });
      this.#known.set(id, null);
      this.accepted.push({ voids: id });
      this.counts.voided++;
      return;
    }
    const event = this.#event(id);
    await asked('replace', { reason: 'chaos', event });
    this.#known.set(id, event);
    this.accepted.push({ replaces: id, event });
    this.counts.replaced++;
  }

  #raggedQuestions(): ModelQuestion[] {
    const at = () => FIRST + this.#chance.whole(0, (LAST - FIRST) / 1000) * 1000 + this.#chance.whole(0, 999);
    return Array.from({ length: 2 }, () => {
      const [start, end] = [at(), at()].sort((a, b) => a - b) as [number, number];
      const range = { start: new Date(start).toISOString(), end: new Date(end + 60_000).toISOString() };
      const clock = { window_size: this.#chance.pick(WINDOWS), timezone: this.#chance.pick(TIMEZONES) };
      return { ...range, ...clock, customers: [this.#chance.pick(CUSTOMERS)] };
    });
  }
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
    { type: 'SUM', expression: 'size * 1.5 + 2' },
  ];
  const value = ({ size }: Record<string, unknown>) => new Decimal(size as number).times('1.5').plus(2);
  return aggregations.map((aggregation, index) => ({
    name: `${aggregation.type} ${index} of ${name}`,
    event_name: index % 3 === 2 ? `job ${name}` : `call ${name}`,
    aggregation,
    filters: FILTERS[index % FILTERS.length]!,
    reset_usage: aggregation.type === 'MAX' || index === 1 ? 'NEVER' : 'BILLING_PERIOD',
    ...(aggregation.expression ? { value } : {}),
  }));
}

function randomEvent(chance: Chance, event_id: string): ModelEvent {
  const timestamp = new Date(FIRST + Math.floor(chance.next() * (LAST - FIRST))).toISOString();
  return {
    event_id,
    event_name: chance.pick(['call', 'call', 'job']),
    external_customer_id: chance.pick(CUSTOMERS),
    timestamp: timestamp.replace('Z', `${chance.whole(0, 999)}Z`),
    source: 'chaos',
    properties: {
      host: chance.pick(['h1', 'h2', 'h3', 3, '3', true, null]),
      region: chance.pick(['eu', 'us', 1, '1', true, null]),
      size: chance.whole(0, 1_000),
      n: chance.pick<() => unknown>([
        () => chance.whole(-50, 5_000),
        () => `${chance.whole(0, 999)}.${chance.whole(0, 999_999)}`,
        () => chance.pick(['1e3', ' 7 ', '12345678901234567890.123456789', '.5', 'abc', null, true]),
      ])(),
    },
  };
}
