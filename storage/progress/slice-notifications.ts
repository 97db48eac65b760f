/**
 * Notifications of the bucket rows that slices added, for API processes that cache answers (docs/decisions/0007-cached-answers.md). A
 * notification is written in the statement that raises `next_offset`, so no notification exists without that change. None is written while
 * no process requests notifications. If one is missing, the reader clears its cache and reads the rows.
 */

import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { Database } from '../foundation/stores.ts';

type SliceNotification = {
  readonly partition: number;
  readonly epoch: bigint;
  readonly from: bigint;
  readonly to: bigint;
  readonly rows: readonly BucketRow[];
  getVersion(meter_id: string): number;
};

/**
 * Maximum length of a notification. A larger slice sends none, because the cached answers that it would update are much smaller and can be
 * recomputed.
 */
const TEXT_MAX = 4 * 1024 * 1024;
/** Time for which a request of a reader is valid. An active reader renews it. */
const WANTED_SECONDS = 60;
const REFRESH_INTERVAL_MS = 1_000;

export async function requestSliceNotifications(database: Database): Promise<void> {
  await database.raw(
    `update told_slices_wanted set until = now() + ? * interval '1 second' where until < now() + ? * interval '1 second'`,
    [WANTED_SECONDS, WANTED_SECONDS / 2],
  );
}

type WantedState = { readonly checked_ms: number; readonly isWanted: boolean };
const wanted = new WeakMap<Database, WantedState>();

/**
 * Whether a process requests notifications. The answer is cached for a second, so slices before a new request is seen send no notification.
 */
export async function hasSliceSubscribers(database: Database): Promise<boolean> {
  const known = wanted.get(database);
  if (known && performance.now() - known.checked_ms < REFRESH_INTERVAL_MS) return known.isWanted;
  const checked_ms = performance.now();
  const { rows } = await database.raw('select until > now() as wanted from told_slices_wanted');
  const isWanted = rows[0].wanted === true;
  wanted.set(database, { checked_ms, isWanted });
  return isWanted;
}

/** Notification without rows. */
export const NO_ROWS = '{"meters":[],"rows":[]}';

/** Builds the notification of a slice; null if it is too large. */
export function buildNotification(rows: readonly BucketRow[], getVersion: (meter_id: string) => number): string | null {
  const meters: NotifiedMeter[] = [];
  const indexes = new Map<string, number>();
  const indexMeter = ({ tenant_id, environment_id, meter_id }: BucketRow): number => {
    let index = indexes.get(meter_id);
    if (index === undefined) {
      index = meters.push([tenant_id, environment_id, meter_id, getVersion(meter_id)]) - 1;
      indexes.set(meter_id, index);
    }
    return index;
  };
  const text = JSON.stringify({ meters, rows: rows.map((row) => toNotifiedRow(row, indexMeter(row))) });
  return text.length > TEXT_MAX ? null : text;
}

/** Meter of the rows that contain its index. Its id is unique across tenants and environments, so it is a sufficient key. */
type NotifiedMeter = [tenant_id: string, environment_id: string, meter_id: string, version: number];
type NotifiedRow = ReturnType<typeof toNotifiedRow>;
type Number24 = string | 0 | null;

/** Converts a row to an array without field names, which is shorter: there is one for each row of each slice. */
function toNotifiedRow(row: BucketRow, meter: number) {
  const { external_customer_id, size, bucket_start_us, group_key, first_us, last_us, count, latest, uniques } = row;
  const numbers: Number24[] = [row.sum, row.weighted_sum, row.min, row.max].map(numberText);
  const newest = latest && ([latest.timestamp_us, latest.event_id, String(latest.value)] as const);
  return [
    meter,
    external_customer_id,
    size,
    bucket_start_us,
    group_key,
    first_us,
    last_us,
    count,
    numbers,
    newest,
    uniques,
  ] as const;
}

function numberText(value: bigint | null): Number24 {
  if (value === null) return null;
  return value === 0n ? 0 : String(value);
}

function parseNumber(text: Number24): bigint | null {
  return text === null ? null : BigInt(text);
}

function toBucketRow(notified: NotifiedRow, meters: readonly NotifiedMeter[]): BucketRow {
  const [meter, external_customer_id, size, bucket_start_us, group_key, first_us, last_us, count, numbers] = notified;
  const [newest, uniques] = [notified[9], notified[10]];
  const [tenant_id, environment_id, meter_id] = meters[meter]!;
  const [sum, weighted_sum, min, max] = numbers.map(parseNumber) as [bigint, bigint, bigint | null, bigint | null];
  const latest = newest && { timestamp_us: newest[0], event_id: newest[1], value: BigInt(newest[2]) };
  const key = { tenant_id, environment_id, meter_id, external_customer_id, size, bucket_start_us, group_key };
  return { ...key, first_us, last_us, count, sum, weighted_sum, min, max, latest, uniques };
}

/** Maximum compressed size of the notifications that are read at once. A reader with a larger backlog recomputes its answers. */
const READ_BYTES_MAX = 2 * 1024 * 1024;

/** Reads the notifications from these offsets on, in order; returns none if they are too large. */
export async function readSliceNotifications(
  database: Database,
  after: readonly { readonly partition: number; readonly at: bigint }[],
): Promise<SliceNotification[]> {
  const { rows } = await database.raw(
    `select partition, epoch, from_offset, to_offset, rows
       from (select t.partition, t.epoch, t.from_offset, t.to_offset, t.rows, sum(pg_column_size(t.rows)) over () as bytes
               from unnest(?::int[], ?::bigint[]) as after (partition, at) join told_slices t using (partition)
              where t.from_offset >= after.at) as missing
      where bytes <= ? order by partition, from_offset`,
    [after.map(({ partition }) => partition), after.map(({ at }) => String(at)), READ_BYTES_MAX],
  );
  return (rows as { partition: number; epoch: string; from_offset: string; to_offset: string; rows: string }[]).map(
    (notification) => {
      const { meters, rows: notified } = JSON.parse(notification.rows) as {
        meters: NotifiedMeter[];
        rows: NotifiedRow[];
      };
      const versions = new Map(meters.map(([, , meter_id, version]) => [meter_id, version]));
      return {
        partition: notification.partition,
        epoch: BigInt(notification.epoch),
        from: BigInt(notification.from_offset),
        to: BigInt(notification.to_offset),
        rows: notified.map((one) => toBucketRow(one, meters)),
        // This function is called only for meters that have a row.
        getVersion: (meter_id) => versions.get(meter_id)!,
      };
    },
  );
}
