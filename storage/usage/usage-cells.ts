/** Gathers what a question is answered from: merged partials of the pre-aggregated rows, and of the raw rows beside them. */
import { type SegmentPlan, withEdges } from '../../core/analytics/segments.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import { EventCells } from '../../core/metering/event-cells.ts';
import type { PlacedCell } from '../../core/metering/usage.ts';
import type { Scope } from '../../core/scope.ts';
import { type RawEvent, type RawEventsWanted, rawEvents } from '../events/raw-events.ts';
import type { Stores } from '../stores.ts';
import { Turns } from '../turns.ts';
import { type BucketQuestion, bucketCells, type Cell, type ExtraUniques, type Inside } from './bucket-cells.ts';
import { cellsOfLines, isOfLines } from './bucket-lines.ts';
import { asSmall, checkCells, readWithin } from './question.ts';
import type { Snapshot } from './snapshot.ts';
import type { UsageAsked } from './usage-asked.ts';

export type Reading = {
  stores: Stores;
  scope: Scope;
  asked: UsageAsked;
  meter: CompiledMeter;
  meter_version: number;
  grid: { timezone: string; billing_anchor: number | null };
  stop: ReadonlyMap<number, bigint> | undefined;
  plan: SegmentPlan;
  snapshot: Snapshot;
};

export type CellsRead = {
  readonly cells: readonly PlacedCell[];
  /** Whether raw rows were read for them. */
  readonly has_raw: boolean;
};

export async function cellsOf(reading: Reading): Promise<CellsRead> {
  const cells = await cellsOfRows(reading);
  if (cells !== null) return { cells, has_raw: false };
  return { cells: await cellsWithRaw(reading), has_raw: reading.plan.raw_ranges.length > 0 };
}

/**
 * All of a ragged range from pre-aggregated rows, in one statement. Null where nothing is ragged, and where the base rows of a
 * ragged end hold events beyond the range, or might: then the raw rows tell.
 */
async function cellsOfRows(reading: Reading): Promise<PlacedCell[] | null> {
  const { plan, asked, stores } = reading;
  if (plan.edge_ranges.length === 0) return null;
  const question = { ...questionOf(reading), plan: withEdges(plan) };
  const inside = [asked.start_us, asked.end_us] as const;
  const cells = await storedCells(stores, question, inside);
  return cells?.map(placed) ?? null;
}

async function cellsWithRaw(reading: Reading): Promise<PlacedCell[]> {
  const { meter, plan } = reading;
  const fromRaw = plan.raw_ranges.length === 0 ? [] : await rawCells(reading);
  const countsUniques = meter.aggregation.fills.includes('uniques');
  const usesBuckets = plan.base_ranges.length + plan.day_ranges.length > 0;
  const unite = countsUniques && usesBuckets;
  const question = { ...questionOf(reading), extra_uniques: unite ? fromRaw.map(extraOf) : [] };
  const stored = usesBuckets ? await storedCells(reading.stores, question) : [];
  const cells = stored!.map(placed);
  // Where the engine has united the distinct values, the raw cells still carry their count of events.
  return unite ? [...cells, ...fromRaw.map((cell) => ({ ...cell, counted_uniques: 0 }))] : [...cells, ...fromRaw];
}

/** Together with who else asks, or by a statement of its own. Null only where `inside` is given (bucket-cells.ts). */
function storedCells({ clickhouse }: Stores, question: BucketQuestion, inside?: Inside): Promise<Cell[] | null> {
  if (isOfLines(question)) return cellsOfLines(clickhouse, question, inside);
  return asSmall(question.bounds, () => bucketCells(clickhouse, question, inside));
}

function questionOf({ scope, meter, meter_version, asked, plan }: Reading): BucketQuestion {
  const { external_customer_ids, by_customer = false, bounds } = asked;
  return { ...scope, meter, meter_version, external_customer_ids, by_customer, plan, extra_uniques: [], bounds };
}

function placed({ customer, ...cell }: Cell): PlacedCell {
  return { ...cell, key: customer };
}

/** The raw rows that the plan leaves to be read one by one. */
export function rawWanted({ scope, asked, meter, plan, snapshot, stop }: Reading): RawEventsWanted {
  return {
    ...scope,
    event_name: meter.event_name,
    ...(asked.external_customer_ids === null ? {} : { external_customer_ids: asked.external_customer_ids }),
    ...(asked.only?.sources ? { sources: asked.only.sources } : {}),
    ranges: plan.raw_ranges,
    before: stop ? earlierOf(snapshot.before, stop) : snapshot.before,
  };
}

function extraOf(cell: PlacedCell): ExtraUniques {
  return {
    segment_us: cell.segment_us,
    window_us: cell.window_us,
    group_key: cell.group_key,
    customer: cell.key,
    values: cell.bucket.uniques,
  };
}

/** A stopped meter counts nothing behind its last barrier. */
function earlierOf(before: ReadonlyMap<number, bigint>, stop: ReadonlyMap<number, bigint>): Map<number, bigint> {
  return new Map(
    [...before].map(([partition, offset]) => {
      const end = stop.get(partition);
      return [partition, end !== undefined && end < offset ? end : offset];
    }),
  );
}

async function rawCells(reading: Reading): Promise<PlacedCell[]> {
  const { asked, meter, plan, grid } = reading;
  const { bounds, only } = asked;
  const passes = only?.passes;
  return readWithin(bounds, meter, async (work) => {
    const turns = new Turns(bounds?.asker);
    const gathering = new EventCells<RawEvent>({
      meter,
      plan,
      grid,
      passes: passes && ((event) => passes(event.properties)),
      key_of: asked.key_of ?? ((event) => (asked.by_customer ? event.external_customer_id : '')),
    });
    const wanted = { ...rawWanted(reading), signal: bounds?.signal };
    for await (const event of rawEvents(reading.stores.clickhouse, wanted)) {
      if (!work.maySpend(event.length)) return undefined;
      gathering.add(event);
      if (bounds) checkCells(gathering.size);
      if (turns.isOver()) await turns.next(bounds?.signal);
    }
    return gathering.all();
  });
}
