/**
 * Contents of corrected events as accepted: the corrections from Postgres, applied one by one to the events as sent. The audits
 * compare them with ClickHouse and with the answers of readers.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { parseEventTime } from '../../../core/foundation/time/instant.ts';
import { readEvent } from '../../../core/metering/event-text.ts';
import { listAcceptedCorrections, loadSentEvents, type SentEvent } from '../../../storage/audit/events-as-sent.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';

export type AcceptedContent = SentEvent & {
  /** The correction that gave the event this content; null for the content as sent. */
  readonly correction_id: string | null;
  readonly is_void: boolean;
};

/** Returns, by event, its content as sent, and after each correction. */
export async function applyCorrections(
  { postgres, clickhouse }: Pick<Stores, 'postgres' | 'clickhouse'>,
  { tenant_id, environment_id }: Scope,
  event_ids: readonly string[],
): Promise<Map<string, AcceptedContent[]>> {
  const scope = { tenant_id, environment_id };
  const contents = new Map<string, AcceptedContent[]>();
  for (const event of await loadSentEvents(clickhouse, scope, event_ids))
    contents.set(event.event_id, [{ ...event, correction_id: null, is_void: false }]);
  for (const { id: correction_id, event_id, replacement } of await listAcceptedCorrections(
    postgres,
    scope,
    event_ids,
  )) {
    const known = contents.get(event_id);
    if (!known) continue;
    const last = known.at(-1)!;
    if (replacement === null) known.push({ ...last, correction_id, is_void: true });
    else known.push({ ...last, correction_id, is_void: false, ...replaceContent(last, replacement) });
  }
  return contents;
}

/** Replaces the content. A replacement without a time retains the event's time. */
function replaceContent({ timestamp_us }: SentEvent, replacement: string) {
  const { timestamp, ...content } = parseReplacement(replacement);
  const at = timestamp ? parseEventTime(timestamp) : undefined;
  return { ...content, timestamp_us: typeof at === 'number' ? at : timestamp_us };
}

export function parseReplacement(text: string) {
  const {
    event_name,
    external_customer_id = '',
    customer_id = '',
    source = '',
    timestamp,
    properties,
  } = readEvent(text);
  return { event_name, external_customer_id, customer_id, source, timestamp, properties: properties?.json() ?? '{}' };
}
