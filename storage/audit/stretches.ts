/**
 * What ClickHouse holds of stretches of the log, added up in one reading of a table however many stretches there are, so
 * that neither memory nor time grows with their number. Rows are compared by a sum of hashes, which knows no order.
 */
import { askRows, type ClickHouseClient } from '../clickhouse/clickhouse.ts';
import type { Place, Stretch } from './ledger.ts';

export type Rows = { readonly rows: number; readonly sum: bigint };
export type PlacedRows = Rows & { readonly places: number };

export type OutcomeCounts = { readonly rows: number; readonly places: number };
export type Outcomes = Readonly<Record<(typeof OUTCOMES)[number], OutcomeCounts>>;

/** Instead of a row of `events`. */
export const OUTCOMES = ['duplicate', 'conflict', 'dead_letter'] as const;

/** Whose it is, when it was, and where it stands: the same of an event and of its identity. */
export const PLACED_ID_HASH = 'cityHash64(tenant_id, environment_id, event_id, timestamp, partition, offset, position)';
/** Distinct places of about two million rows at a time; equal hashes of two places would only have it looked at again. */
const PLACES = 'uniqExact(sipHash64(offset, position))';

/** Raw rows of stretches of one partition, but those at these places. */
export async function rawRowsIn(
  clickhouse: ClickHouseClient,
  stretches: readonly Stretch[],
  except: readonly Place[] = [],
): Promise<PlacedRows[]> {
  const found = await addedUp<{ n: string; places: string; sum: string }>(clickhouse, stretches, {
    from: 'events',
    values: `count() as n, ${PLACES} as places, sum(${PLACED_ID_HASH}) as sum`,
    except,
  });
  return found.map((rows) =>
    rows.reduce((all, row) => ({ ...withRow(all, row), places: all.places + Number(row.places) }), {
      ...NONE,
      places: 0,
    }),
  );
}

/** Identities, of any partitions: their table is ordered by hash, so every question reads all of it. */
export async function identitiesIn(
  clickhouse: ClickHouseClient,
  stretches: readonly Stretch[],
  except: readonly Place[] = [],
): Promise<Rows[]> {
  const values = `count() as n, sum(${PLACED_ID_HASH}) as sum`;
  const found = await addedUp<{ n: string; sum: string }>(clickhouse, stretches, {
    from: 'event_identities',
    values,
    except,
  });
  return found.map((rows) => rows.reduce(withRow, NONE));
}

/** Outcomes of stretches of one partition; those of meters, which a back-fill writes as well, aside. */
export async function outcomesIn(clickhouse: ClickHouseClient, stretches: readonly Stretch[]): Promise<Outcomes[]> {
  const counts = OUTCOMES.map(
    (outcome) =>
      `countIf(outcome = '${outcome}') as ${outcome}_rows, uniqExactIf(sipHash64(offset, position), outcome = '${outcome}') as ${outcome}_places`,
  );
  const found = await addedUp<Record<string, string>>(clickhouse, stretches, {
    from: 'event_outcomes',
    values: counts.join(', '),
  });
  return found.map((rows) => {
    const total = (name: string) => rows.reduce((sum, row) => sum + Number(row[name]), 0);
    const counted = OUTCOMES.map((name) => [name, { rows: total(`${name}_rows`), places: total(`${name}_places`) }]);
    return Object.fromEntries(counted) as Outcomes;
  });
}

/** How many raw rows there are, without a look at anything else. */
export async function countRawRows(clickhouse: ClickHouseClient, stretches: readonly Stretch[]): Promise<number[]> {
  const found = await addedUp<{ n: string }>(clickhouse, stretches, { from: 'events', values: 'count() as n' });
  return found.map((rows) => rows.reduce((sum, row) => sum + Number(row.n), 0));
}

const NONE: Rows = { rows: 0, sum: 0n };
const ALL_SUMS = 1n << 64n;

function withRow<Sums extends Rows>(all: Sums, row: { n: string; sum: string }): Sums {
  return { ...all, rows: all.rows + Number(row.n), sum: (all.sum + BigInt(row.sum)) % ALL_SUMS };
}

/** A partition and an offset as one number that orders both: offsets do not come near 2^48. */
const KEY = '(bitShiftLeft(toUInt64(partition), 48) + offset)';
const keyOf = (partition: number, offset: bigint) => (BigInt(partition) << 48n) + offset;

type Adding = { readonly from: string; readonly values: string; readonly except?: readonly Place[] };

/** For each stretch the rows of the answer that are of it: one, or several where stretches overlap, as they never should. */
async function addedUp<Row>(
  clickhouse: ClickHouseClient,
  stretches: readonly Stretch[],
  { from, values, except = [] }: Adding,
): Promise<Row[][]> {
  if (stretches.length === 0) return [];
  const keys = stretches.flatMap(({ partition, from: first, to }) => [keyOf(partition, first), keyOf(partition, to)]);
  const bounds = [...new Set(keys)].sort((a, b) => (a < b ? -1 : 1));
  const conditions = [`${KEY} >= {first:UInt64}`, `${KEY} < {end:UInt64}`, ...onePartition(stretches)];
  const params: Record<string, unknown> = { bounds, first: bounds[0], end: bounds.at(-1) };
  if (except.length > 0) {
    conditions.push(
      `(${KEY}, position) not in arrayZip({except_keys:Array(UInt64)}, {except_positions:Array(UInt32)})`,
    );
    params['except_keys'] = except.map(({ partition, offset }) => keyOf(partition, offset));
    params['except_positions'] = except.map(({ position }) => position);
  }
  const query = `select roundDown(${KEY}, {bounds:Array(UInt64)}) as bound, ${values} from ${from}
                  where ${conditions.join(' and ')} group by bound`;
  const rows = await askRows<Row & { bound: string }>(clickhouse, `${from} of the log`, { query, params });
  const byBound = new Map(rows.map((row) => [BigInt(row.bound), row]));
  return stretches.map(({ partition, from: first, to }) => {
    const own = bounds.filter((bound) => bound >= keyOf(partition, first) && bound < keyOf(partition, to));
    return own.flatMap((bound) => byBound.get(bound) ?? []);
  });
}

/** What the indexes of a table can use. */
function onePartition(stretches: readonly Stretch[]): string[] {
  const [{ partition, from }] = stretches as [Stretch];
  if (stretches.some((other) => other.partition !== partition)) return [];
  const first = stretches.reduce((least, other) => (other.from < least ? other.from : least), from);
  const end = stretches.reduce((most, other) => (other.to > most ? other.to : most), from);
  return [`partition = ${partition}`, `offset >= ${first}`, `offset < ${end}`];
}
