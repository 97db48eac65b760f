/**
 * Sums of ClickHouse's rows per range of the log. One read of a table serves any number of ranges, so memory and time do not grow
 * with their number. Rows are compared by a sum of hashes, which is independent of their order.
 */
import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import type { LogEventPosition, OffsetRange } from './ledger.ts';

export type AuditedRowSum = { readonly rows: number; readonly sum: bigint };
export type PositionedRows = AuditedRowSum & { readonly positions: number };

type OutcomeCounts = { readonly rows: number; readonly positions: number };
export type Outcomes = Readonly<Record<(typeof OUTCOMES)[number], OutcomeCounts>>;

/** Outcomes of an event that has no row in `events`. */
export const OUTCOMES = ['duplicate', 'conflict', 'dead_letter'] as const;

/** Hash of an event's id, time and position; equal for an event and its identity. */
export const POSITIONED_ID_HASH =
  'cityHash64(tenant_id, environment_id, event_id, timestamp, partition, offset, position)';
/** SQL that counts distinct positions by a hash, among about two million rows at a time. A collision would only cause a recheck. */
const DISTINCT_POSITIONS = 'uniqExact(sipHash64(offset, position))';

/** Sums raw rows of ranges of one partition, without the positions in `except`. */
export async function sumRawRows(
  clickhouse: ClickHouseClient,
  ranges: readonly OffsetRange[],
  except: readonly LogEventPosition[] = [],
): Promise<PositionedRows[]> {
  const found = await sumByRange<{ n: string; positions: string; sum: string }>(clickhouse, ranges, {
    from: 'events',
    values: `count() as n, ${DISTINCT_POSITIONS} as positions, sum(${POSITIONED_ID_HASH}) as sum`,
    except,
  });
  return found.map((rows) =>
    rows.reduce((all, row) => ({ ...withRow(all, row), positions: all.positions + Number(row.positions) }), {
      ...NONE,
      positions: 0,
    }),
  );
}

/** Sums identities per range, for any partitions: the table is ordered by hash, so every query reads all of it. */
export async function sumIdentities(
  clickhouse: ClickHouseClient,
  ranges: readonly OffsetRange[],
  except: readonly LogEventPosition[] = [],
): Promise<AuditedRowSum[]> {
  const values = `count() as n, sum(${POSITIONED_ID_HASH}) as sum`;
  const found = await sumByRange<{ n: string; sum: string }>(clickhouse, ranges, {
    from: 'event_identities',
    values,
    except,
  });
  return found.map((rows) => rows.reduce(withRow, NONE));
}

/** Counts the outcomes in ranges of one partition, except outcomes of meters, which a back-fill writes as well. */
export async function countOutcomes(clickhouse: ClickHouseClient, ranges: readonly OffsetRange[]): Promise<Outcomes[]> {
  const counts = OUTCOMES.map(
    (outcome) =>
      `countIf(outcome = '${outcome}') as ${outcome}_rows, uniqExactIf(sipHash64(offset, position), outcome = '${outcome}') as ${outcome}_positions`,
  );
  const found = await sumByRange<Record<string, string>>(clickhouse, ranges, {
    from: 'event_outcomes',
    values: counts.join(', '),
  });
  return found.map((rows) => {
    const total = (name: string) => rows.reduce((sum, row) => sum + Number(row[name]), 0);
    const counted = OUTCOMES.map((name) => [
      name,
      { rows: total(`${name}_rows`), positions: total(`${name}_positions`) },
    ]);
    return Object.fromEntries(counted) as Outcomes;
  });
}

export async function countRawRows(clickhouse: ClickHouseClient, ranges: readonly OffsetRange[]): Promise<number[]> {
  const found = await sumByRange<{ n: string }>(clickhouse, ranges, { from: 'events', values: 'count() as n' });
  return found.map((rows) => rows.reduce((sum, row) => sum + Number(row.n), 0));
}

const NONE: AuditedRowSum = { rows: 0, sum: 0n };
const ALL_SUMS = 1n << 64n;

function withRow<Sums extends AuditedRowSum>(all: Sums, row: { n: string; sum: string }): Sums {
  return { ...all, rows: all.rows + Number(row.n), sum: (all.sum + BigInt(row.sum)) % ALL_SUMS };
}

/** Partition and offset as one number that orders both: offsets stay far below 2^48. */
const KEY = '(bitShiftLeft(toUInt64(partition), 48) + offset)';
const toOffsetKey = (partition: number, offset: bigint) => (BigInt(partition) << 48n) + offset;

type RangeSumQuery = { readonly from: string; readonly values: string; readonly except?: readonly LogEventPosition[] };

/** Groups the rows of the answer by range: one row per range, or several if ranges overlap, which they should not. */
async function sumByRange<Row>(
  clickhouse: ClickHouseClient,
  ranges: readonly OffsetRange[],
  { from, values, except = [] }: RangeSumQuery,
): Promise<Row[][]> {
  if (ranges.length === 0) return [];
  const keys = ranges.flatMap(({ partition, from: first, to }) => [
    toOffsetKey(partition, first),
    toOffsetKey(partition, to),
  ]);
  const bounds = [...new Set(keys)].sort((a, b) => (a < b ? -1 : 1));
  const conditions = [`${KEY} >= {first:UInt64}`, `${KEY} < {end:UInt64}`, ...onePartition(ranges)];
  const params: Record<string, unknown> = { bounds, first: bounds[0], end: bounds.at(-1) };
  if (except.length > 0) {
    conditions.push(
      `(${KEY}, position) not in arrayZip({except_keys:Array(UInt64)}, {except_positions:Array(UInt32)})`,
    );
    params['except_keys'] = except.map(({ partition, offset }) => toOffsetKey(partition, offset));
    params['except_positions'] = except.map(({ position }) => position);
  }
  const query = `select roundDown(${KEY}, {bounds:Array(UInt64)}) as bound, ${values} from ${from}
                  where ${conditions.join(' and ')} group by bound`;
  const rows = await loadRows<Row & { bound: string }>(clickhouse, `${from} of the log`, { query, params });
  const byBound = new Map(rows.map((row) => [BigInt(row.bound), row]));
  return ranges.map(({ partition, from: first, to }) => {
    const own = bounds.filter((bound) => bound >= toOffsetKey(partition, first) && bound < toOffsetKey(partition, to));
    return own.flatMap((bound) => byBound.get(bound) ?? []);
  });
}

/** SQL conditions for the partition and the offsets of the ranges, which the indexes of a table can use. */
function onePartition(ranges: readonly OffsetRange[]): string[] {
  const [{ partition, from }] = ranges as [OffsetRange];
  if (ranges.some((other) => other.partition !== partition)) return [];
  const first = ranges.reduce((least, other) => (other.from < least ? other.from : least), from);
  const end = ranges.reduce((most, other) => (other.to > most ? other.to : most), from);
  return [`partition = ${partition}`, `offset >= ${first}`, `offset < ${end}`];
}
