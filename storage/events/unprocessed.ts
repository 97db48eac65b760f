/**
 * Looks for an event in the log, behind what the stores hold: it was accepted and has not taken effect yet. Only the
 * embedded log can be searched; in any other an event is found once it is in the stores.
 */
import { IdentityHasher, partitionOfShard, shardOf } from '../../core/event/identity.ts';
import { elementSpans, NO_PROPERTIES, readEvent } from '../../core/metering/event-text.ts';
import { parseTimestamp } from '../../core/metering/timestamp.ts';
import type { Scope } from '../../core/scope.ts';
import { EmbeddedLog } from '../log/embedded.ts';
import type { Stores } from '../stores.ts';
import type { FoundEvent } from './find-events.ts';

type Row = { offset: string; received_at_us: string; made_ids: string | null; body: Buffer };

export async function findUnprocessed(
  { log, postgres }: Stores,
  scope: Scope,
  event_id: string,
): Promise<FoundEvent | undefined> {
  if (!(log instanceof EmbeddedLog)) return undefined;
  const hasher = new IdentityHasher(scope);
  hasher.hash(event_id);
  const partition = partitionOfShard(shardOf(hasher.high), log.partition_count);
  const inJson = Buffer.from(JSON.stringify(event_id).slice(1, -1));
  const { rows } = await postgres.raw(
    `select "offset", received_at_us, made_ids, body from log_records
      where partition = ? and kind = 'events' and tenant_id = ? and environment_id = ?
        and "offset" >= coalesce((select next_offset from slices where partition = ?), 0)
        and (position(? in body) > 0 or position(? in coalesce(made_ids, '')) > 0)
      order by "offset" limit 10`,
    [partition, scope.tenant_id, scope.environment_id, partition, inJson, event_id],
  );
  for (const row of rows as Row[]) {
    const found = eventIn(row, event_id);
    if (found) return { ...found, partition };
  }
  return undefined;
}

function eventIn(row: Row, event_id: string): Omit<FoundEvent, 'partition'> | undefined {
  const text = row.body.toString('utf8');
  const made = row.made_ids === null ? {} : (JSON.parse(row.made_ids) as Record<string, string>);
  for (const [position, span] of elementSpans(text).entries()) {
    const fields = fieldsAt(text, span);
    if (!fields || (fields.event_id ?? made[position]) !== event_id) continue;
    const given = fields.timestamp === undefined ? undefined : parseTimestamp(fields.timestamp);
    return {
      event_id,
      external_customer_id: fields.external_customer_id ?? '',
      customer_id: fields.customer_id ?? '',
      event_name: fields.event_name,
      timestamp_us: typeof given === 'number' ? given : Number(row.received_at_us),
      received_at_us: Number(row.received_at_us),
      source: fields.source ?? '',
      offset: Number(row.offset),
      properties: (fields.properties ?? NO_PROPERTIES).json(),
    };
  }
  return undefined;
}

/** What cannot be read will be dead-lettered: it is shown then, with the reason. */
function fieldsAt(text: string, span: { start: number; end: number }) {
  try {
    return readEvent(text, span.start, span.end);
  } catch {
    return undefined;
  }
}
