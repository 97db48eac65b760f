/**
 * Reads the raw events at the edges of a range if they are few: those since a range that ends now, those of an edge whose rows count few,
 * and those of the many lines of one answer. One statement answers all concurrent queries. It returns the log position of each event, so a
 * query can detect events that were counted while the rows were read.
 */

import { groupBy } from '../../core/foundation/group-by.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { US_PER_HOUR } from '../../core/foundation/time/instant.ts';
import { isInRanges, mergeRanges, type SegmentRange } from '../../core/metering/analytics/segments.ts';
import type { ClickHouseClient } from '../clickhouse/clickhouse.ts';
import { KeyedBatchLoader } from '../concurrency/batch-loader.ts';
import { type QueryBounds, runAsSmall } from '../concurrency/query-bounds.ts';
import { mapYielding } from '../concurrency/time-slicer.ts';
import { loadFewEvents, type PositionedRawEvent } from '../events/raw-events.ts';

type OutsideEventsQuery = Scope & {
  readonly event_name: string;
  readonly external_customer_ids: readonly string[];
  readonly ranges: readonly SegmentRange[];
  readonly bounds: QueryBounds | undefined;
  readonly has_corrections: boolean;
};

const QUERIES_MAX = 500;
/** Maximum length of the customers and names of a statement; a server accepts 128 KiB for a parameter. */
const PARAMETERS_LENGTH_MAX = 100_000;
/** Maximum number of events, summed over all answers of a statement: lines of several meters may each need the same events. */
const ANSWERED_EVENTS_MAX = 500_000;

const OUTSIDE_EVENTS = new KeyedBatchLoader<ClickHouseClient, OutsideEventsQuery, PositionedRawEvent[] | null>(
  loadBatch,
  {
    batchMax: QUERIES_MAX,
    lengthMax: PARAMETERS_LENGTH_MAX,
    measureLength: ({ event_name, external_customer_ids }) =>
      external_customer_ids.reduce((sum, customer) => sum + customer.length + AROUND, event_name.length + AROUND),
  },
);
/** Number of characters around each text: quotation marks and a comma. */
const AROUND = 3;

/**
 * Loads the events outside the ranges. Returns null if they are too many for one answer; each query then streams its
 * own events.
 */
export async function loadEventsOutside(
  clickhouse: ClickHouseClient,
  query: OutsideEventsQuery,
): Promise<PositionedRawEvent[] | null> {
  const { tenant_id, environment_id, bounds } = query;
  // A batch reads the ranges of all of its queries for each of their customers, so it contains queries of the same hours only.
  const hours = query.ranges.map(([from, to]) => [Math.floor(from / US_PER_HOUR), Math.floor((to - 1) / US_PER_HOUR)]);
  const key = JSON.stringify([tenant_id, environment_id, bounds?.asker ?? null, hours]);
  const events = await OUTSIDE_EVENTS.load(clickhouse, query, key);
  bounds?.signal.throwIfAborted();
  return events;
}

async function loadBatch(
  clickhouse: ClickHouseClient,
  queries: readonly OutsideEventsQuery[],
): Promise<(PositionedRawEvent[] | null)[]> {
  const { tenant_id, environment_id, bounds } = queries[0]!;
  const wanted = {
    tenant_id,
    environment_id,
    event_names: [...new Set(queries.map(({ event_name }) => event_name))],
    external_customer_ids: [...new Set(queries.flatMap(({ external_customer_ids }) => external_customer_ids))],
    ranges: mergeRanges(queries.flatMap(({ ranges }) => ranges)),
    has_corrections: queries.some(({ has_corrections }) => has_corrections),
  };
  // The batch has a signal of its own: a caller that disconnects does not cancel the statement of the other callers.
  const sharedBounds = bounds && { ...bounds, signal: new AbortController().signal, spent: { work: 0 } };
  const events = await runAsSmall({ tenant_id, bounds: sharedBounds }, () => loadFewEvents(clickhouse, wanted));
  if (events === null) return queries.map(() => null);
  const byEventName = groupBy(events, ({ external_customer_id, event_name }) =>
    eventNameKey(external_customer_id, event_name),
  );
  let answered = 0;
  return mapYielding(bounds?.asker, queries, ({ external_customer_ids, event_name, ranges }) => {
    if (answered > ANSWERED_EVENTS_MAX) return null;
    const own = [...new Set(external_customer_ids)]
      .flatMap((customer) => byEventName.get(eventNameKey(customer, event_name)) ?? [])
      .filter(({ timestamp_us }) => isInRanges(ranges, timestamp_us));
    answered += own.length;
    return own;
  });
}

function eventNameKey(external_customer_id: string, event_name: string): string {
  return JSON.stringify([external_customer_id, event_name]);
}
