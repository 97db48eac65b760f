/** Finds events that repeat an id with other content, before they are appended (docs/rules/identity.md, "The same id with other content"). */
import { readEvent } from '../event-text.ts';
import { ContentHash, hashContent } from './content-hash.ts';
import { isTimestampSent, parseEventTimestamp } from './timed.ts';

export type EventContentHashes = { readonly content_crc: number; readonly content_hash: number };

/** Hashes the content of a valid event as the pipeline does. `text` is its JSON. */
export function hashEventContent(text: string): EventContentHashes {
  const { event_name, external_customer_id, customer_id, source, timestamp, properties } = readEvent(text);
  const time_us = timestamp !== undefined && isTimestampSent(timestamp) ? parseEventTimestamp(timestamp) : undefined;
  const { crc, hash } = hashContent(new ContentHash(), {
    name: event_name,
    customer: external_customer_id ?? '',
    customer_id: customer_id ?? '',
    source: source ?? '',
    time: time_us === undefined ? '' : String(time_us),
    properties: properties?.json() ?? '{}',
  });
  return { content_crc: crc, content_hash: hash };
}

/** The contents of the last events by id. An id is forgotten after `IDS_MAX` to twice as many others. */
export class SentContents {
  #newer = new Map<string, EventContentHashes>();
  #older = new Map<string, EventContentHashes>();

  /** Records the first content of an id; returns false if another one is recorded. */
  add(event_id: string, content: EventContentHashes): boolean {
    const first = this.#newer.get(event_id) ?? this.#older.get(event_id);
    if (first !== undefined) return hasSameContent(first, content);
    if (this.#newer.size >= IDS_MAX) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(event_id, content);
    return true;
  }
}

const IDS_MAX = 100_000;

/** Whether two events have the same content. An event from before the second hash existed is compared by its CRC alone. */
export function hasSameContent(owner: EventContentHashes, event: EventContentHashes): boolean {
  if (owner.content_crc !== event.content_crc) return false;
  return owner.content_hash === event.content_hash || owner.content_hash === 0;
}
