/** The operations of the ingestion.* areas, through the real interface and pipeline. */
import { z } from 'zod';
import type { Result } from './compare.ts';
import { exampleWorld, freshName } from './example-world.ts';

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
  const place = await exampleWorld();
  const event_name = freshName();
  for (let copy = 0; copy < copies; copy++) {
    const timestamp = new Date(Date.UTC(2026, 2, 15, 10) + copy * apart * 1000).toISOString();
    const event_id = same_id ? event_name : `${event_name} ${copy}`;
    const body = { event_id, event_name, external_customer_id: 'acme', timestamp, properties: { v: value } };
    await place.api.request('POST', '/events', { body });
  }
  await place.waitForPipeline();
  const body = { event_name, aggregation_type: aggregation, property_name: 'v' };
  return { usage: (await place.api.request('POST', '/events/usage', { body })).body.value };
}

export async function ingestRawBulk(given: Result): Promise<Result> {
  const { events } = z.object({ events: z.union([z.array(z.unknown()), z.coerce.number()]) }).parse(given);
  const { api } = await exampleWorld();
  const list =
    typeof events === 'number'
      ? Array.from({ length: events }, () => ({ event_name: 'raw', external_customer_id: 'acme' }))
      : events;
  const answer = await api.request('POST', '/events/raw/bulk', { body: { events: list } });
  return { http_status: answer.status, error_code: answer.body?.code };
}
