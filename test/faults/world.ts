/**
 * A small world on the real service: meters, events sent singly and in bulk, corrections, and what all of it should come to.
 *
 *   const world = await openWorld(service, 'engine');
 *   await world.send(40);
 *   await world.void(world.ids[3]!);
 *   await world.settled();
 *   expect(await world.differences()).to.deep.equal([]);
 *
 * Its client does not give up, and knows nothing of faults: what has no answer is sent again.
 */
import { settle } from '../chaos/chaos.ts';
import { Client } from '../chaos/client.ts';
import type { ModelEntry, ModelEvent, ModelMeter, ModelQuestion } from '../support/reference-model.ts';
import {
  auditAnswer,
  RECORD_CHECKS,
  rowDifferences,
  storeDifferences,
  usageDifferences,
  withAudit,
} from './compare.ts';
import type { SupervisedService } from './supervised.ts';

const DAY_MS = 86_400_000;
const CUSTOMERS = ['acme', 'böhm', 'c'];
export const FIRST = Date.parse('2026-02-20T00:00:00Z');
const DAYS = 16;
const WHOLE = { start: new Date(FIRST).toISOString(), end: new Date(FIRST + DAYS * DAY_MS).toISOString() };
/** Its ends are read from raw rows. */
const RAGGED = { start: '2026-02-21T07:20:30.5Z', end: '2026-03-05T10:00:00.001Z' };

type Meter = ModelMeter & { id: string };

export class World {
  readonly accepted: ModelEntry[] = [];
  readonly ids: string[] = [];
  readonly meters: Meter[] = [];
  readonly name: string;
  readonly service: SupervisedService;
  readonly #client: Client;

  constructor(service: SupervisedService, name: string) {
    this.service = service;
    this.name = name;
    this.#client = new Client((method, path, body) => service.ask(method, path, body));
  }

  async makeMeter(aggregation: ModelMeter['aggregation']): Promise<void> {
    const name = `${aggregation.type} ${this.meters.length} of ${this.name}`;
    const event_name = `call ${this.name}`;
    const find = async (): Promise<{ id: string } | undefined> => {
      const listed = await this.#client.untilAnswered('GET', '/meters?limit=1000');
      return listed.body.items.find((meter: { name: string }) => meter.name === name);
    };
    const body = { name, event_name, aggregation, filters: [], reset_usage: 'BILLING_PERIOD' };
    const { id } = await this.#client.make(find, '/meters', body);
    this.meters.push({ event_name, aggregation, filters: [], id });
  }

  /** New events, over two months; acknowledged when it resolves. */
  async send(count: number, { singly = false }: { singly?: boolean } = {}): Promise<void> {
    const events = Array.from({ length: count }, () => this.#newEvent());
    if (!singly) await this.#acknowledged('/events/bulk', { events });
    else await Promise.all(events.map((event) => this.#acknowledged('/events', event)));
    this.accepted.push(...events);
    for (const { event_id } of events) this.ids.push(event_id);
  }

  /** Once more, as they were: nothing comes of it. */
  async sendAgain(count: number): Promise<void> {
    const events = this.accepted.flatMap((entry) => ('event_id' in entry ? [entry] : [])).slice(0, count);
    await this.#acknowledged('/events/bulk', { events });
  }

  async void(id: string): Promise<void> {
    await this.#corrected(id, 'void', { reason: 'a mistake' });
    this.accepted.push({ voids: id });
  }

  async replace(id: string): Promise<void> {
    const { event_id: _other, ...content } = this.#newEvent();
    const event = { ...content, event_id: id };
    await this.#corrected(id, 'replace', { reason: 'a mistake', event });
    this.accepted.push({ replaces: id, event });
  }

  /** Everything that was acknowledged has had its effect. */
  settled(): Promise<void> {
    return settle({
      ask: (method, path, body) => this.service.ask(method, path, body),
      withStores: (look) => this.service.withStores(look),
    });
  }

  /** Nothing when usage, raw events, identities and corrections are what they should be, and the audit says the same. */
  async differences(): Promise<string[]> {
    const ask = async ({ id }: Meter, { start, end, customers }: ModelQuestion) => {
      const asked = { meter_id: id, start_time: start, end_time: end, external_customer_id: customers?.[0] };
      const { body } = await this.#client.untilAnswered('POST', '/events/usage/meter', { body: asked });
      return body.value as string;
    };
    const questions = [WHOLE, RAGGED, { ...WHOLE, customers: [CUSTOMERS[0]!] }];
    const { accepted } = this;
    const usage = await usageDifferences(ask, this.meters, { accepted, questions });
    const stored = await this.service.withStores(async (stores) => [
      ...(await storeDifferences(stores, { accepted, prefix: `${this.name}-` })),
      ...(await rowDifferences(stores, this.meters)),
    ]);
    return withAudit([...usage, ...stored], await auditAnswer(this.service.settings, RECORD_CHECKS));
  }

  async #acknowledged(path: string, body: unknown): Promise<void> {
    await this.#client.untilAnswered('POST', path, { body, statuses: [202] });
  }

  async #corrected(id: string, verb: 'void' | 'replace', body: unknown): Promise<void> {
    await this.#client.untilAnswered('POST', `/events/${encodeURIComponent(id)}/${verb}`, { body, statuses: [202] });
  }

  #made = 0;

  #newEvent(): ModelEvent {
    const number = this.#made++;
    return {
      event_id: `${this.name}-${number}`,
      event_name: `call ${this.name}`,
      external_customer_id: CUSTOMERS[number % CUSTOMERS.length]!,
      timestamp: new Date(FIRST + ((number * 7) % DAYS) * DAY_MS + ((number * 37_003) % 86_400) * 1000).toISOString(),
      source: 'faults',
      properties: { n: `${number % 90}.${number % 7}`, host: `h${number % 5}` },
    };
  }
}

export const METERS: ModelMeter['aggregation'][] = [{ type: 'SUM', field: 'n' }, { type: 'COUNT' }];

/** With meters, and events that are counted. */
export async function openWorld(service: SupervisedService, name: string): Promise<World> {
  const world = new World(service, name);
  for (const aggregation of METERS) await world.makeMeter(aggregation);
  await world.send(60);
  await world.settled();
  return world;
}
