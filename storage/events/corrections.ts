/**
 * Table `event_corrections` in ClickHouse: what takes the place of a corrected event wherever events are read
 * (`raw-events.ts`, and the view `current_events`). The raw row itself stays as it came.
 */

import { hashToBigInt, IdentityHasher } from '../../core/event/identity.ts';
import type { Scope } from '../../core/scope.ts';
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse.ts';
import { instant, label, text, uint16, uint32, uint64 } from './native.ts';
import { type Fence, writeRows } from './rows.ts';
import type { RowTarget } from './tables.ts';

/** What an event says. */
export type EventContent = {
  readonly external_customer_id: string;
  readonly event_name: string;
  readonly timestamp_us: number;
  readonly customer_id: string;
  readonly source: string;
  /** The JSON text of the object. */
  readonly properties: string;
};

export type StoredContent = EventContent & {
  readonly received_at_us: number;
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

/** The event as it was accepted, and the last correction that is stored of it. */
export async function storedContent(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_id: string,
): Promise<{ original: OriginalContent; last: (StoredContent & { action: string }) | undefined } | undefined> {
  const hasher = new IdentityHasher(scope);
  hasher.hash(event_id);
  const { tenant_id, environment_id } = scope;
  const params = { tenant_id, environment_id, event_id, hash: hashToBigInt(hasher.high, hasher.low) };
  const original = await first(
    clickhouse,
    `select ${CONTENT}, toString(offset) as event_place, position as event_position, partition from events
      where ${EVENT} and timestamp in (select timestamp from event_identities where id_hash = {hash:UInt64} and ${EVENT})
      order by offset, position limit 1`,
    params,
  );
  if (!original) return undefined;
  const last = await first(
    clickhouse,
    `select ${CONTENT}, toString(event_offset) as event_place, event_position, action from event_corrections
      where ${EVENT} order by sequence desc limit 1`,
    params,
  );
  return {
    original: { ...contentOf(original), partition: original.partition! },
    last: last && { ...contentOf(last), action: last.action! },
  };
}

/** Everything that an event has said so far. */
export async function contentsOf(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_id: string,
): Promise<StoredContent[]> {
  const stored = await storedContent(clickhouse, scope, event_id);
  if (!stored) return [];
  const rows = await rowsOf(
    clickhouse,
    `select ${CONTENT}, toString(event_offset) as event_place, event_position from event_corrections where ${EVENT}`,
    { tenant_id: scope.tenant_id, environment_id: scope.environment_id, event_id },
  );
  return [stored.original, ...rows.map(contentOf)];
}

/** May be written again: readers take one of equal rows. */
export async function writeCorrection(
  clickhouse: ClickHouseClient,
  row: AppliedCorrection,
  fence: Fence,
): Promise<void> {
  await writeRows(clickhouse, EVENT_CORRECTIONS, { rows: [row], fence });
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

const EVENT =
  'tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and event_id = {event_id:String}';
const CONTENT = `external_customer_id, event_name, customer_id, source, properties,
  toString(toUnixTimestamp64Micro(timestamp)) as at_us, toString(toUnixTimestamp64Micro(received_at)) as got_us`;

type ContentRow = Omit<EventContent, 'timestamp_us'> & {
  at_us: string;
  got_us: string;
  event_place: string;
  event_position: number;
  action?: string;
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

async function first(
  clickhouse: ClickHouseClient,
  query: string,
  params: Record<string, unknown>,
): Promise<ContentRow | undefined> {
  const [row] = await rowsOf(clickhouse, query, params);
  return row;
}

async function rowsOf(
  clickhouse: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown>,
): Promise<ContentRow[]> {
  try {
    const answer = await clickhouse.query({ query, query_params, format: 'JSONEachRow' });
    return await answer.json<ContentRow>();
  } catch (error) {
    throw clickhouseFailure('corrections', error);
  }
}
