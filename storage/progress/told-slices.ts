/**
 * What slices have added to the usage rows, told with the progress that they make, for interfaces that are processes of their own and keep answers in memory
 * (docs/decisions/0006-usage-reads.md). It is written in the statement that moves `next_offset`, so it is there exactly where that has moved; and
 * only while somebody wants it. What is not there has not been told: who needs it forgets what it keeps, and the rows answer.
 */

import type { BucketRow } from '../../core/metering/plan.ts';
import type { Database } from '../stores.ts';

export type ToldSlice = {
  readonly partition: number;
  readonly epoch: bigint;
  readonly from: bigint;
  readonly to: bigint;
  readonly rows: readonly BucketRow[];
  versionOf(meter_id: string): number;
};

/** A slice that comes to more is not told: what it would change is little beside it. */
const TEXT_MAX = 4 * 1024 * 1024;
/** Who wants slices says so again while it looks, and is believed so much longer. */
const WANTED_SECONDS = 60;
const ASKED_EVERY_MS = 1_000;

export async function wantSlices(database: Database): Promise<void> {
  await database.raw(
    `update told_slices_wanted set until = now() + ? * interval '1 second' where until < now() + ? * interval '1 second'`,
    [WANTED_SECONDS, WANTED_SECONDS / 2],
  );
}

type Wanted = { readonly asked_ms: number; readonly isWanted: boolean };
const wanted = new WeakMap<Database, Wanted>();

/** Known for a second: what is told a little later than it is wanted is a slice that is missing. */
export async function areSlicesWanted(database: Database): Promise<boolean> {
  const known = wanted.get(database);
  if (known && performance.now() - known.asked_ms < ASKED_EVERY_MS) return known.isWanted;
  const asked_ms = performance.now();
  const { rows } = await database.raw('select until > now() as wanted from told_slices_wanted');
  const isWanted = rows[0].wanted === true;
  wanted.set(database, { asked_ms, isWanted });
  return isWanted;
}

/** Of what adds nothing. */
export const NO_ROWS = '{"meters":[],"rows":[]}';

/** Null of what is too much. */
export function toldText(rows: readonly BucketRow[], versionOf: (meter_id: string) => number): string | null {
  const meters: SaidMeter[] = [];
  const places = new Map<string, number>();
  const placeOf = ({ tenant_id, environment_id, meter_id }: BucketRow): number => {
    let place = places.get(meter_id);
    if (place === undefined) {
      place = meters.push([tenant_id, environment_id, meter_id, versionOf(meter_id)]) - 1;
      places.set(meter_id, place);
    }
    return place;
  };
  const text = JSON.stringify({ meters, rows: rows.map((row) => saidOf(row, placeOf(row))) });
  return text.length > TEXT_MAX ? null : text;
}

/** An id of a meter is that of one tenant and environment. */
type SaidMeter = [tenant_id: string, environment_id: string, meter_id: string, version: number];
type Said = ReturnType<typeof saidOf>;
type Number24 = string | 0 | null;

/** Without names: there is one for each row of each slice. */
function saidOf(row: BucketRow, meter: number) {
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

function numberOf(text: Number24): bigint | null {
  return text === null ? null : BigInt(text);
}

function rowOf(said: Said, meters: readonly SaidMeter[]): BucketRow {
  const [meter, external_customer_id, size, bucket_start_us, group_key, first_us, last_us, count, numbers] = said;
  const [newest, uniques] = [said[9], said[10]];
  const [tenant_id, environment_id, meter_id] = meters[meter]!;
  const [sum, weighted_sum, min, max] = numbers.map(numberOf) as [bigint, bigint, bigint | null, bigint | null];
  const latest = newest && { timestamp_us: newest[0], event_id: newest[1], value: BigInt(newest[2]) };
  const place = { tenant_id, environment_id, meter_id, external_customer_id, size, bucket_start_us, group_key };
  return { ...place, first_us, last_us, count, sum, weighted_sum, min, max, latest, uniques };
}

/** As they are kept, compressed: who has not looked for so much makes its answers anew, rather than reading all of it at one go. */
const READ_BYTES_MAX = 2 * 1024 * 1024;

/** From these offsets on, in order; none where they are too much. */
export async function readToldSlices(
  database: Database,
  after: readonly { readonly partition: number; readonly at: bigint }[],
): Promise<ToldSlice[]> {
  const { rows } = await database.raw(
    `with missing as (
       select t.partition, t.epoch, t.from_offset, t.to_offset, t.rows, sum(pg_column_size(t.rows)) over () as bytes
         from unnest(?::int[], ?::bigint[]) as after (partition, at) join told_slices t using (partition)
        where t.from_offset >= after.at)
     select partition, epoch, from_offset, to_offset, rows from missing where bytes <= ? order by partition, from_offset`,
    [after.map(({ partition }) => partition), after.map(({ at }) => String(at)), READ_BYTES_MAX],
  );
  return (rows as { partition: number; epoch: string; from_offset: string; to_offset: string; rows: string }[]).map(
    (told) => {
      const { meters, rows: said } = JSON.parse(told.rows) as { meters: SaidMeter[]; rows: Said[] };
      const versions = new Map(meters.map(([, , meter_id, version]) => [meter_id, version]));
      return {
        partition: told.partition,
        epoch: BigInt(told.epoch),
        from: BigInt(told.from_offset),
        to: BigInt(told.to_offset),
        rows: said.map((one) => rowOf(one, meters)),
        // Of a meter that has no row nothing is asked.
        versionOf: (meter_id) => versions.get(meter_id)!,
      };
    },
  );
}
