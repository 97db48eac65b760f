/** The tables that the pipeline fills, and how one record becomes one line of each. */
import { QUANTITY_PLACES } from '../../core/metering/quantity.ts';
import type { BucketRow } from '../../core/metering/plan.ts';
import { escaped, type RowTarget } from './rows.ts';

const micros = (name: string) => ({ name, type: 'Int64', as: `fromUnixTimestamp64Micro(${name}, 'UTC')` });
const quantity = `Decimal(76, ${QUANTITY_PLACES})`;

/** An event that takes effect: accepted, new, with its place in the log. */
export type StoredEvent = {
  readonly tenant_id: string;
  readonly environment_id: string;
  readonly event_id: string;
  readonly event_name: string;
  readonly external_customer_id: string;
  readonly customer_id: string;
  readonly source: string;
  readonly timestamp_us: number;
  readonly received_at_us: number;
  /** The JSON text of the object. */
  readonly properties: string;
  readonly partition: number;
  readonly offset: number;
  readonly position: number;
  readonly id_high: number;
  readonly id_low: number;
  readonly content_crc: number;
};

export const EVENTS: RowTarget = {
  table: 'events',
  columns: [
    { name: 'tenant_id', type: 'LowCardinality(String)' },
    { name: 'environment_id', type: 'LowCardinality(String)' },
    { name: 'external_customer_id', type: 'String' },
    { name: 'event_name', type: 'LowCardinality(String)' },
    micros('timestamp'),
    { name: 'event_id', type: 'String' },
    { name: 'customer_id', type: 'String' },
    { name: 'source', type: 'LowCardinality(String)' },
    { name: 'properties', type: 'String' },
    micros('received_at'),
    { name: 'partition', type: 'UInt16' },
    { name: 'offset', type: 'UInt64' },
    { name: 'position', type: 'UInt32' },
  ],
};

export function eventLine(event: StoredEvent): string {
  return `${escaped(event.tenant_id)}\t${escaped(event.environment_id)}\t${escaped(event.external_customer_id)}\t${escaped(event.event_name)}\t${event.timestamp_us}\t${escaped(event.event_id)}\t${escaped(event.customer_id)}\t${escaped(event.source)}\t${escaped(event.properties)}\t${event.received_at_us}\t${event.partition}\t${event.offset}\t${event.position}\n`;
}

export const EVENT_IDENTITIES: RowTarget = {
  table: 'event_identities',
  columns: [
    { name: 'id_hash', type: 'Tuple(UInt32, UInt32)', as: 'bitOr(bitShiftLeft(toUInt64(id_hash.1), 32), id_hash.2)' },
    { name: 'tenant_id', type: 'LowCardinality(String)' },
    { name: 'environment_id', type: 'LowCardinality(String)' },
    { name: 'event_id', type: 'String' },
    micros('timestamp'),
    { name: 'partition', type: 'UInt16' },
    { name: 'offset', type: 'UInt64' },
    { name: 'position', type: 'UInt32' },
    { name: 'content_crc', type: 'UInt32' },
  ],
};

export function identityLine(event: StoredEvent): string {
  return `(${event.id_high},${event.id_low})\t${escaped(event.tenant_id)}\t${escaped(event.environment_id)}\t${escaped(event.event_id)}\t${event.timestamp_us}\t${event.partition}\t${event.offset}\t${event.position}\t${event.content_crc}\n`;
}

export type OutcomeKind = 'duplicate' | 'conflict' | 'dead_letter' | 'unusable';

export type EventOutcome = {
  readonly tenant_id: string;
  readonly environment_id: string;
  readonly event_id: string;
  readonly outcome: OutcomeKind;
  readonly meter_id: string;
  readonly reason: string;
  readonly received_at_us: number;
  readonly partition: number;
  readonly offset: number;
  readonly position: number;
  readonly body: string;
};

export const EVENT_OUTCOMES: RowTarget = {
  table: 'event_outcomes',
  columns: [
    { name: 'tenant_id', type: 'LowCardinality(String)' },
    { name: 'environment_id', type: 'LowCardinality(String)' },
    { name: 'event_id', type: 'String' },
    { name: 'outcome', type: 'LowCardinality(String)' },
    { name: 'meter_id', type: 'String' },
    { name: 'reason', type: 'String' },
    micros('received_at'),
    { name: 'partition', type: 'UInt16' },
    { name: 'offset', type: 'UInt64' },
    { name: 'position', type: 'UInt32' },
    { name: 'body', type: 'String' },
  ],
};

export function outcomeLine(outcome: EventOutcome): string {
  return `${escaped(outcome.tenant_id)}\t${escaped(outcome.environment_id)}\t${escaped(outcome.event_id)}\t${outcome.outcome}\t${escaped(outcome.meter_id)}\t${escaped(outcome.reason)}\t${outcome.received_at_us}\t${outcome.partition}\t${outcome.offset}\t${outcome.position}\t${escaped(outcome.body)}\n`;
}

export const USAGE_BUCKETS: RowTarget = {
  table: 'usage_buckets',
  columns: [
    { name: 'tenant_id', type: 'LowCardinality(String)' },
    { name: 'environment_id', type: 'LowCardinality(String)' },
    { name: 'meter_id', type: 'LowCardinality(String)' },
    { name: 'meter_version', type: 'UInt32' },
    { name: 'size', type: 'LowCardinality(String)' },
    { name: 'external_customer_id', type: 'String' },
    { name: 'bucket_start', type: 'Int64', as: "toDateTime64(bucket_start, 0, 'UTC')" },
    { name: 'group_key', type: 'String' },
    { name: 'event_count', type: 'UInt64' },
    { name: 'sum', type: quantity },
    { name: 'weighted_sum', type: quantity },
    { name: 'min', type: `Nullable(${quantity})` },
    { name: 'max', type: `Nullable(${quantity})` },
    { name: 'latest', type: `Tuple(Int64, String, ${quantity})` },
    { name: 'uniques', type: 'String', as: "arrayReduce('uniqExactState', JSONExtract(uniques, 'Array(String)'))" },
  ],
};

export function bucketLine(row: BucketRow, meterVersion: number): string {
  const latest = row.latest
    ? `(${row.latest.timestamp_us},'${quoted(row.latest.event_id)}',${decimalText(row.latest.value)})`
    : NO_LATEST;
  const uniques = row.uniques.length === 0 ? '[]' : escaped(JSON.stringify(row.uniques));
  return `${escaped(row.tenant_id)}\t${escaped(row.environment_id)}\t${escaped(row.meter_id)}\t${meterVersion}\t${row.size}\t${escaped(row.external_customer_id)}\t${row.bucket_start_us / 1_000_000}\t${escaped(row.group_key)}\t${row.count}\t${decimalText(row.sum)}\t${decimalText(row.weighted_sum)}\t${nullableText(row.min)}\t${nullableText(row.max)}\t${latest}\t${uniques}\n`;
}

/** Older than any event: the greatest of it and another is the other. */
const NO_LATEST = "(-9223372036854775808,'',0)";

/** A text inside a tuple of a tab-separated line: quoted there, then escaped as the line's value. */
function quoted(text: string): string {
  return escaped(text.replaceAll('\\', '\\\\').replaceAll("'", "\\'"));
}

function nullableText(scaled: bigint | null): string {
  return scaled === null ? '\\N' : decimalText(scaled);
}

/** An integer times 10^24 as decimal text. */
function decimalText(scaled: bigint): string {
  if (scaled === 0n) return '0';
  const digits = (scaled < 0n ? -scaled : scaled).toString().padStart(QUANTITY_PLACES + 1, '0');
  const point = digits.length - QUANTITY_PLACES;
  return `${scaled < 0n ? '-' : ''}${digits.slice(0, point)}.${digits.slice(point)}`;
}
