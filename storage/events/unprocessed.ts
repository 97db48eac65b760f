/**
 * Searches the log for an event that was accepted and has not taken effect yet. Only the embedded log can be searched; with any other log,
 * an event is found once it is in the stores.
 */

import type { Scope } from '../../core/foundation/scope.ts';
import { parseEventTime } from '../../core/foundation/time/instant.ts';
import { IdentityHasher, toPartition, toShard } from '../../core/metering/event/identity.ts';
import { elementSpans, NO_PROPERTIES, readEvent } from '../../core/metering/event-text.ts';
import type { Stores } from '../foundation/stores.ts';
import { EmbeddedLog } from '../log/embedded/embedded.ts';
import type { LogRecord } from '../log/log.ts';
import type { FoundEvent } from './find-events.ts';

const RECORDS_PER_READ = 100;

export async function findUnprocessed(
  { log, postgres }: Stores,
  scope: Scope,
  event_id: string,
): Promise<FoundEvent | undefined> {
  if (!(log instanceof EmbeddedLog)) return undefined;
  const hasher = new IdentityHasher(scope);
  hasher.hash(event_id);
  const partition = toPartition(toShard(hasher.high), log.partition_count);
  const { rows } = await postgres.raw(`select next_offset from slices where partition = ?`, [partition]);
  const inJson = Buffer.from(JSON.stringify(event_id).slice(1, -1));
  for (let from = BigInt(rows[0]?.next_offset ?? 0); ; ) {
    const records = await log.records({ ...scope, partition, from, containing: inJson, limit: RECORDS_PER_READ });
    for (const record of records) {
      if (!record.body.includes(inJson) && !Object.values(record.generated_ids ?? {}).includes(event_id)) continue;
      const found = eventIn(record, event_id);
      if (found) return { ...found, partition };
    }
    if (records.length < RECORDS_PER_READ) return undefined;
    from = records.at(-1)!.offset + 1n;
  }
}

function eventIn(record: LogRecord, event_id: string): Omit<FoundEvent, 'partition'> | undefined {
  const text = record.body.toString('utf8');
  const generated_ids = record.generated_ids ?? {};
  for (const [position, span] of elementSpans(text).entries()) {
    const fields = fieldsAt(text, span);
    if (!fields || (fields.event_id ?? generated_ids[position]) !== event_id) continue;
    const given = fields.timestamp === undefined ? undefined : parseEventTime(fields.timestamp);
    return {
      event_id,
      external_customer_id: fields.external_customer_id ?? '',
      customer_id: fields.customer_id ?? '',
      event_name: fields.event_name,
      timestamp_us: typeof given === 'number' ? given : record.received_at_us,
      received_at_us: record.received_at_us,
      source: fields.source ?? '',
      offset: Number(record.offset),
      properties: (fields.properties ?? NO_PROPERTIES).json(),
    };
  }
  return undefined;
}

/** Parses the fields of an event. If it cannot be parsed, it will become a dead letter and is shown then, with the reason. */
function fieldsAt(text: string, span: { start: number; end: number }) {
  try {
    return readEvent(text, span.start, span.end);
  } catch {
    return undefined;
  }
}
