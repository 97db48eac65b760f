/**
 * Finds the differing rows if the sums of a range of the log differ, and names the first of them. A range has up to a million
 * positions.
 */

import { type ClickHouseClient, loadRows } from '../clickhouse/clickhouse.ts';
import type { LogTable } from '../events/present.ts';
import type { LogEventPosition, OffsetRange } from './ledger.ts';
import { POSITIONED_ID_HASH } from './offset-ranges.ts';

/** An event with its position. */
export type NamedPosition = {
  readonly offset: string;
  readonly position: number;
  readonly tenant_id: string;
  readonly environment_id: string;
  readonly event_id: string;
};

type PositionSample = { readonly total: number; readonly first: readonly NamedPosition[] };

const NAMED_MAX = 5;

/** Finds positions with more than one row in a table; `outcome` selects rows of the table of outcomes. */
export async function findDuplicatePositions(
  clickhouse: ClickHouseClient,
  table: 'events' | 'event_outcomes',
  { range, outcome }: { range: OffsetRange; outcome?: string },
): Promise<PositionSample> {
  const where =
    outcome === undefined ? buildRangeCondition(range) : `${buildRangeCondition(range)} and outcome = '${outcome}'`;
  const doubled = `select offset as o, position as p from ${table} where ${where} group by o, p having count() > 1`;
  const [row] = await loadRows<{ n: string; positions: [string, number][] }>(clickhouse, `doubled rows of ${table}`, {
    query: `select count() as n, groupArraySorted(${NAMED_MAX})((o, p)) as positions from (${doubled})`,
  });
  return named(clickhouse, { total: row!.n, positions: row!.positions }, { table, where });
}

/** Raw rows without an identity of equal id, instant and position, and identities without such a raw row. */
export async function findUnmatchedRows(
  clickhouse: ClickHouseClient,
  range: OffsetRange,
  except: readonly LogEventPosition[],
): Promise<{ without_identity: PositionSample; without_raw_row: PositionSample }> {
  const where = buildRangeCondition(range);
  const row = (table: string, is_raw: number) =>
    `select ${POSITIONED_ID_HASH} as h, offset as o, position as p, ${is_raw} as is_raw from ${table} where ${where}`;
  const unmatched = `
    select any(o) as off, any(p) as pos, max(is_raw) as has_raw, min(is_raw) as has_no_identity
      from (${row('events', 1)} union all ${row('event_identities', 0)})
     where (o, p) not in arrayZip({offsets:Array(UInt64)}, {positions:Array(UInt32)})
     group by h having has_raw = has_no_identity`;
  const first = (condition: string) => `groupArraySortedIf(${NAMED_MAX})((off, pos), ${condition})`;
  const [found] = await loadRows<{
    raw: string;
    raw_positions: [string, number][];
    ids: string;
    id_positions: [string, number][];
  }>(clickhouse, 'raw rows against identities', {
    query: `select countIf(has_raw = 1) as raw, ${first('has_raw = 1')} as raw_positions,
                     countIf(has_raw = 0) as ids, ${first('has_raw = 0')} as id_positions from (${unmatched})`,
    params: {
      offsets: except.map(({ offset }) => offset),
      positions: except.map(({ position }) => position),
    },
  });
  const { raw, raw_positions, ids, id_positions } = found!;
  return {
    without_identity: await named(clickhouse, { total: raw, positions: raw_positions }, { table: 'events', where }),
    without_raw_row: await named(
      clickhouse,
      { total: ids, positions: id_positions },
      { table: 'event_identities', where },
    ),
  };
}

/**
 * Counts the rows at or after `offset`, by partition. They belong to a slice in progress, or to a slice that a restored Postgres no longer
 * knows.
 */
export async function countRowsFrom(
  clickhouse: ClickHouseClient,
  table: LogTable,
  from: ReadonlyMap<number, bigint>,
): Promise<{ partition: number; rows: number; last: bigint }[]> {
  const partitions = [...from.keys()];
  const known = 'transform(partition, {partitions:Array(UInt16)}, {from:Array(UInt64)}, toUInt64(0))';
  const rows = await loadRows<{ partition: number; n: string; last: string }>(
    clickhouse,
    `rows ahead of the progress`,
    {
      query: `select partition, count() as n, max(offset) as last from ${table}
             where ${partitions.length === 0 ? 'true' : `offset >= ${known}`}
             group by partition order by partition`,
      params: { partitions, from: partitions.map((partition) => from.get(partition)!) },
    },
  );
  return rows.map(({ partition, n, last }) => ({ partition, rows: Number(n), last: BigInt(last) }));
}

function buildRangeCondition({ partition, from, to }: OffsetRange): string {
  return `partition = ${partition} and offset >= ${from} and offset < ${to}`;
}

/** Adds the ids of the events. */
async function named(
  clickhouse: ClickHouseClient,
  { total, positions }: { total: string; positions: readonly [string, number][] },
  { table, where }: { table: string; where: string },
): Promise<PositionSample> {
  if (positions.length === 0) return { total: Number(total), first: [] };
  const rows = await loadRows<NamedPosition & { o: string; p: number }>(clickhouse, `events at positions of ${table}`, {
    query: `select distinct toString(offset) as o, position as p, tenant_id, environment_id, event_id from ${table}
             where ${where} and (offset, position) in arrayZip({offsets:Array(UInt64)}, {positions:Array(UInt32)})
             order by offset, position, event_id limit ${NAMED_MAX * 2}`,
    params: {
      offsets: positions.map(([offset]) => BigInt(offset)),
      positions: positions.map(([, position]) => position),
    },
  });
  const first = rows.map(({ o, p, tenant_id, environment_id, event_id }) => ({
    offset: o,
    position: p,
    tenant_id,
    environment_id,
    event_id,
  }));
  return { total: Number(total), first };
}
