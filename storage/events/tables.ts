/** The tables that the pipeline fills, and the source of each column in a record. */

import { type Microseconds, toMs, toUs, US_PER_DAY, US_PER_SECOND } from '../../core/foundation/time/instant.ts';
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { QUANTITY_PLACES } from '../../core/metering/quantity.ts';
import {
  bits64Column,
  decimalColumn,
  instantColumn,
  int64Column,
  labelColumn,
  type NativeColumn,
  nullableColumn,
  textArrayColumn,
  textColumn,
  tupleColumn,
  uint16Column,
  uint32Column,
  uint64Column,
} from './native.ts';

export type RowTarget<Row> = {
  readonly table: string;
  readonly columns: readonly NativeColumn<Row>[];
  /** Columns with one value in all rows of a statement, as SQL. */
  readonly constants?: Readonly<Record<string, string>>;
  /** Instant by whose UTC month the table is partitioned. */
  readonly instant_us?: (row: Row) => number;
};

/** Start of the UTC month, in microseconds, as in the partitioning of the tables. */
export function toMonthStart(instant_us: Microseconds): number {
  const date = new Date(toMs(instant_us));
  return toUs(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1));
}

/** Month of a UTC day in the format of ClickHouse's toYYYYMM: the partition of the tables that are partitioned by month. */
export function toMonthNumber(day: number): number {
  const date = new Date(toMs(day * US_PER_DAY));
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}

/** An event that takes effect: accepted, new, with its position in the log. */
export type StoredEvent = {
  readonly tenant_id: string;
  readonly environment_id: string;
  readonly event_id: string;
  readonly event_name: string;
  readonly external_customer_id: string;
  readonly customer_id: string;
  readonly source: string;
  readonly timestamp_us: Microseconds;
  readonly received_at_us: Microseconds;
  /** JSON text of the object. */
  readonly properties_json: string;
  readonly partition: number;
  readonly offset: number;
  readonly position: number;
  readonly id_high: number;
  readonly id_low: number;
  readonly content_crc: number;
  readonly content_hash: number;
};

export const EVENTS: RowTarget<StoredEvent> = {
  table: 'events',
  instant_us: (event) => event.timestamp_us,
  columns: [
    labelColumn('tenant_id', (event) => event.tenant_id),
    labelColumn('environment_id', (event) => event.environment_id),
    textColumn('external_customer_id', (event) => event.external_customer_id),
    labelColumn('event_name', (event) => event.event_name),
    instantColumn('timestamp', 6, (event) => event.timestamp_us),
    textColumn('event_id', (event) => event.event_id),
    textColumn('customer_id', (event) => event.customer_id),
    labelColumn('source', (event) => event.source),
    textColumn('properties', (event) => event.properties_json),
    instantColumn('received_at', 6, (event) => event.received_at_us),
    uint16Column('partition', (event) => event.partition),
    uint64Column('offset', (event) => event.offset),
    uint32Column('position', (event) => event.position),
  ],
};

export const EVENT_IDENTITIES: RowTarget<StoredEvent> = {
  table: 'event_identities',
  columns: [
    bits64Column(
      'id_hash',
      (event) => event.id_high,
      (event) => event.id_low,
    ),
    labelColumn('tenant_id', (event) => event.tenant_id),
    labelColumn('environment_id', (event) => event.environment_id),
    textColumn('event_id', (event) => event.event_id),
    textColumn('external_customer_id', (event) => event.external_customer_id),
    labelColumn('event_name', (event) => event.event_name),
    instantColumn('timestamp', 6, (event) => event.timestamp_us),
    uint16Column('partition', (event) => event.partition),
    uint64Column('offset', (event) => event.offset),
    uint32Column('position', (event) => event.position),
    uint32Column('content_crc', (event) => event.content_crc),
    uint32Column('content_hash', (event) => event.content_hash),
  ],
};

export const EVENT_OUTCOMES: RowTarget<EventOutcome> = {
  table: 'event_outcomes',
  instant_us: (outcome) => outcome.received_at_us,
  columns: [
    labelColumn('tenant_id', (outcome) => outcome.tenant_id),
    labelColumn('environment_id', (outcome) => outcome.environment_id),
    textColumn('event_id', (outcome) => outcome.event_id),
    labelColumn('outcome', (outcome) => outcome.outcome),
    textColumn('meter_id', (outcome) => outcome.meter_id),
    textColumn('reason', (outcome) => outcome.reason),
    instantColumn('received_at', 6, (outcome) => outcome.received_at_us),
    uint16Column('partition', (outcome) => outcome.partition),
    uint64Column('offset', (outcome) => outcome.offset),
    uint32Column('position', (outcome) => outcome.position),
    textColumn('body', (outcome) => outcome.body),
  ],
};

/** Older than any event: the neutral element of `max`. */
export const NO_LATEST = `(toInt64(-9223372036854775808), '', toDecimal256(0, ${QUANTITY_PLACES}))`;

const places = QUANTITY_PLACES;

/**
 * Event time of rows with unknown event times: the positive value is after any range, the negative one before it. A JS number represents
 * both exactly.
 */
export const UNKNOWN_US = 9_000_000_000_000_000_000;

/** The pre-aggregated rows, each counted by the version of its meter; written by `bucket-rows.ts`, with the number of the attempt. */
export function bucketRowsTarget(getVersion: (meterId: string) => number, attempt = 0n): RowTarget<BucketRow> {
  return {
    table: 'usage_buckets',
    instant_us: (row) => row.bucket_start_us,
    constants: { attempt: String(attempt) },
    columns: [
      labelColumn('tenant_id', (row) => row.tenant_id),
      labelColumn('environment_id', (row) => row.environment_id),
      labelColumn('meter_id', (row) => row.meter_id),
      uint32Column('meter_version', (row) => getVersion(row.meter_id)),
      labelColumn('size', (row) => row.size),
      textColumn('external_customer_id', (row) => row.external_customer_id),
      instantColumn('bucket_start', 0, (row) => row.bucket_start_us / US_PER_SECOND),
      textColumn('group_key', (row) => row.group_key),
      uint64Column('event_count', (row) => row.count),
      int64Column('first_us', (row) => row.first_us ?? -UNKNOWN_US),
      int64Column('last_us', (row) => row.last_us ?? UNKNOWN_US),
      { ...decimalColumn('sum', places, (row: BucketRow) => row.sum), rare: { has: (row) => row.sum !== 0n } },
      {
        ...decimalColumn('weighted_sum', places, (row: BucketRow) => row.weighted_sum),
        rare: { has: (row) => row.weighted_sum !== 0n },
      },
      { ...nullableColumn('min', places, (row: BucketRow) => row.min), rare: { has: (row) => row.min !== null } },
      { ...nullableColumn('max', places, (row: BucketRow) => row.max), rare: { has: (row) => row.max !== null } },
      latest,
      uniques,
    ],
  };
}

const latest: NativeColumn<BucketRow> = {
  ...tupleColumn('latest', [
    int64Column('timestamp_us', (row: BucketRow) => row.latest?.timestamp_us ?? NEVER_US),
    textColumn('event_id', (row) => row.latest?.event_id ?? ''),
    decimalColumn('value', places, (row) => row.latest?.value ?? 0n),
  ]),
  rare: { has: (row) => row.latest !== null, neutral: NO_LATEST },
};

/** The value -2^63, which a number represents exactly. */
const NEVER_US = -9223372036854775808;

const uniques: NativeColumn<BucketRow> = {
  ...textArrayColumn('unique_values', (row: BucketRow) => row.uniques),
  rare: { has: (row) => row.uniques.length > 0 },
};
