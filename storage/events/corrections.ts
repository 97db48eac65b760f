/**
 * Table `event_corrections` in ClickHouse: what takes the place of a corrected event wherever events are read
 * (`raw-events.ts`, and the view `current_events`). The raw row itself stays as it came.
 */

import { hashToBigInt, IdentityHasher } from '../../core/event/identity.ts';
import { groupBy } from '../../core/group-by.ts';
import { type Scope, scopeKey } from '../../core/scope.ts';
import type { Microseconds } from '../../core/time/instant.ts';
import { askRows, type ClickHouseClient } from '../clickhouse/clickhouse.ts';
import { instant, label, text, uint16, uint32, uint64 } from './native.ts';
import { writeRows } from './rows.ts';
import type { RowTarget } from './tables.ts';
import type { WriteAttempt } from './write-fence.ts';

/** What an event says. */
export type EventContent = {
  readonly external_customer_id: string;
  readonly event_name: string;
  readonly timestamp_us: Microseconds;
  readonly customer_id: string;
  readonly source: string;
  /** The JSON text of the object. */
  readonly properties: string;
};

export type StoredContent = EventContent & {
  readonly received_at_us: Microseconds;
  readonly event_offset: number;
  readonly event_position: number;
};

/** Offsets of two partitions cannot be compared: the same id may have stood on another before partitions were added. */
export type OriginalContent = StoredContent & { readonly partition: number };

export type AppliedCorrection = StoredContent &
  Scope & {
    readonly event_id: string;
    readonly sequence: string;
    readonly action: 'void' | 'replace';
    readonly partition: number;
    readonly offset: number;
  };

/** What an event has said: as it was accepted, and by each correction that is stored of it, oldest first. */
export type EventHistory = {
  readonly original: OriginalContent;
  readonly corrections: readonly (StoredContent & { readonly sequence: bigint; readonly action: string })[];
};

/** The histories of those events that were accepted, by their ids. */
export async function historiesOf(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_ids: readonly string[],
): Promise<Map<string, EventHistory>> {
  const hasher = new IdentityHasher(scope);
  const hashes = event_ids.map((event_id) => {
    hasher.hash(event_id);
    return hashToBigInt(hasher.high, hasher.low);
  });
  const { tenant_id, environment_id } = scope;
  const params = { tenant_id, environment_id, event_ids: [...event_ids] };
  const [originals, corrections] = await Promise.all([
    askRows<ContentRow>(clickhouse, 'corrected events', {
      query: `
        select event_id, ${CONTENT}, toString(offset) as event_place, position as event_position, partition from events
         where ${EVENTS_ASKED} and timestamp in
               (select timestamp from event_identities where id_hash in {hashes:Array(UInt64)} and ${EVENTS_ASKED})
         order by event_id, offset, position limit 1 by event_id`,
      params: { ...params, hashes },
    }),
    askRows<ContentRow>(clickhouse, 'corrections', {
      query: `
        select event_id, ${CONTENT}, toString(event_offset) as event_place, event_position, action, toString(sequence) as nth
          from event_corrections where ${EVENTS_ASKED} order by event_id, sequence limit 1 by event_id, sequence`,
      params,
    }),
  ]);
  const byEvent = groupBy(corrections, (row) => row.event_id);
  return new Map(
    originals.map((row) => [
      row.event_id,
      {
        original: { ...contentOf(row), partition: row.partition! },
        corrections: (byEvent.get(row.event_id) ?? []).map((correction) => ({
          ...contentOf(correction),
          action: correction.action!,
          sequence: BigInt(correction.nth!),
        })),
      },
    ]),
  );
}

/** The event as it was accepted, and the last correction that is stored of it. */
export async function storedContent(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_id: string,
): Promise<{ original: OriginalContent; last: (StoredContent & { action: string }) | undefined } | undefined> {
  const history = (await historiesOf(clickhouse, scope, [event_id])).get(event_id);
  return history && { original: history.original, last: history.corrections.at(-1) };
}

export async function writeCorrections(
  clickhouse: ClickHouseClient,
  rows: readonly AppliedCorrection[],
  attempt: WriteAttempt,
): Promise<void> {
  await writeRows(clickhouse, EVENT_CORRECTIONS, { rows, attempt });
}

/** Those of the corrections that are not there. */
export async function missingCorrections(
  clickhouse: ClickHouseClient,
  rows: readonly AppliedCorrection[],
): Promise<AppliedCorrection[]> {
  const there = new Set<string>();
  for (const some of groupBy(rows, scopeKey).values()) {
    const { tenant_id, environment_id } = some[0];
    const event_ids = some.map(({ event_id }) => event_id);
    const stored = await askRows<{ nth: string; action: string }>(clickhouse, 'corrections', {
      query: `select toString(sequence) as nth, action from event_corrections where ${EVENTS_ASKED}`,
      params: { tenant_id, environment_id, event_ids },
    });
    for (const { nth, action } of stored) there.add(`${nth}.${action}`);
  }
  return rows.filter(({ sequence, action }) => !there.has(`${sequence}.${action}`));
}

const EVENT_CORRECTIONS: RowTarget<AppliedCorrection> = {
  table: 'event_corrections',
  columns: [
    label('tenant_id', (row) => row.tenant_id),
    label('environment_id', (row) => row.environment_id),
    text('event_id', (row) => row.event_id),
    uint64('sequence', (row) => Number(row.sequence)),
    label('action', (row) => row.action),
    uint16('partition', (row) => row.partition),
    uint64('offset', (row) => row.offset),
    text('external_customer_id', (row) => row.external_customer_id),
    label('event_name', (row) => row.event_name),
    instant('timestamp', 6, (row) => row.timestamp_us),
    text('customer_id', (row) => row.customer_id),
    label('source', (row) => row.source),
    text('properties', (row) => row.properties),
    instant('received_at', 6, (row) => row.received_at_us),
    uint64('event_offset', (row) => row.event_offset),
    uint32('event_position', (row) => row.event_position),
  ],
};

const EVENTS_ASKED =
  'tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and event_id in {event_ids:Array(String)}';
const CONTENT = `external_customer_id, event_name, customer_id, source, properties,
  toString(toUnixTimestamp64Micro(timestamp)) as at_us, toString(toUnixTimestamp64Micro(received_at)) as got_us`;

type ContentRow = Omit<EventContent, 'timestamp_us'> & {
  event_id: string;
  at_us: string;
  got_us: string;
  event_place: string;
  event_position: number;
  action?: string;
  nth?: string;
  partition?: number;
};

function contentOf(row: ContentRow): StoredContent {
  const { external_customer_id, event_name, customer_id, source, properties, event_position } = row;
  return {
    external_customer_id,
    event_name,
    timestamp_us: Number(row.at_us),
    customer_id,
    source,
    properties,
    received_at_us: Number(row.got_us),
    event_offset: Number(row.event_place),
    event_position,
  };
}
