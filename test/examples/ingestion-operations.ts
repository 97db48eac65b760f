/** The operations of the ingestion.* areas, through the real interface and pipeline. */
import { z } from 'zod';
import { startWorld, type World } from '../support/world.ts';
import type { Result } from './compare.ts';

let started: Promise<World> | undefined;
let example = 0;

const world = () => (started ??= startWorld({ now: '2026-03-15T12:00:00Z' }));

/** Each suite that ran such operations ends its world, before the stores of the run are stopped. */
export async function endWorld(): Promise<void> {
  const ending = started;
  started = undefined;
  await (await ending)?.stop();
}

const dedupShape = z.object({
  same_id: z.boolean().default(true),
  copies: z.coerce.number(),
  aggregation: z.string(),
  value: z.string().default('1'),
  timestamps_differ_seconds: z.coerce.number().default(0),
});

/** Copies of one event, and what their meter then says. */
export async function ingestAndQuery(given: Result): Promise<Result> {
  const { same_id, copies, aggregation, value, timestamps_differ_seconds: apart } = dedupShape.parse(given);
  const place = await world();
  const event_name = `example ${++example}`;
  for (let copy = 0; copy < copies; copy++) {
    const timestamp = new Date(Date.UTC(2026, 2, 15, 10) + copy * apart * 1000).toISOString();
    const event_id = same_id ? event_name : `${event_name} ${copy}`;
    const body = { event_id, event_name, external_customer_id: 'acme', timestamp, properties: { v: value } };
    await place.api.request('POST', '/events', { body });
  }
  await place.settle();
  const body = { event_name, aggregation_type: aggregation, property_name: 'v' };
  return { usage: (await place.api.request('POST', '/events/usage', { body })).body.value };
}

export async function ingestRawBulk(given: Result): Promise<Result> {
  const { events } = z.object({ events: z.union([z.array(z.unknown()), z.coerce.number()]) }).parse(given);
  const { api } = await world();
  const list =
    typeof events === 'number'
      ? Array.from({ length: events }, () => ({ event_name: 'raw', external_customer_id: 'acme' }))
      : events;
  const answer = await api.request('POST', '/events/raw/bulk', { body: { events: list } });
  return { http_status: answer.status, error_code: answer.body?.code };
}
