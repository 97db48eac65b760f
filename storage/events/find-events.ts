/**
 * Reads pages of a list of current events. The JSON text of properties is returned as it was sent.
 */

import { invalid } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { compilePropertyFilters, type PropertyFilters } from '../../core/metering/analytics/property-filter.ts';
import { properties as propertiesIn } from '../../core/metering/event-text.ts';
import {
  type ClickHouseClient,
  ClickHouseError,
  loadRows,
  streamRows,
  toClickHouseFailure,
} from '../clickhouse/clickhouse.ts';
import { type QueryBounds, runAsLarge, runAsSmall } from '../concurrency/query-bounds.ts';
import { TimeSlicer } from '../concurrency/time-slicer.ts';

export type FoundEvent = {
  readonly event_id: string;
  readonly external_customer_id: string;
  readonly customer_id: string;
  readonly event_name: string;
  readonly timestamp_us: Microseconds;
  readonly received_at_us: Microseconds;
  readonly source: string;
  readonly partition: number;
  readonly offset: number;
  /** JSON text of the object. */
  readonly properties: string;
};

/** Position of an event in chronological order, for cursors. */
export type EventPlace = { readonly timestamp_us: Microseconds; readonly event_id: string };

export type FoundEventsQuery = Scope & {
  readonly external_customer_id?: string | null | undefined;
  readonly event_name?: string | null | undefined;
  readonly event_id?: string | null | undefined;
  readonly source?: string | null | undefined;
  readonly start_us?: Microseconds | null | undefined;
  readonly end_us?: Microseconds | null | undefined;
  readonly property_filters?: PropertyFilters | null | undefined;
  /** Position before which, or after which, the events must strictly lie. */
  readonly earlier_than?: EventPlace | undefined;
  readonly later_than?: EventPlace | undefined;
  readonly bounds?: QueryBounds | undefined;
};

type EventOrder = { readonly by: 'timestamp' | 'event_name'; readonly direction: 'asc' | 'desc' };

/** A page of events. `is_cut` is true if more events belong to the page, but their properties exceed the size limit. */
type FoundPage = { readonly events: FoundEvent[]; readonly is_cut: boolean };

/** Maximum length of all properties of a page. A page ends with the event that exceeds it. */
export const PAGE_BYTES = 8 * 1024 * 1024;

/** Up to `limit` events from an offset on, in order. */
export async function findEvents(
  clickhouse: ClickHouseClient,
  wanted: FoundEventsQuery,
  { order, offset, limit }: { order: EventOrder; offset: number; limit: number },
): Promise<FoundPage> {
  const passes = buildFilter(wanted);
  if (!passes) return runAsSmall(wanted, () => readPage(clickhouse, wanted, { order, offset, limit }));
  return runAsLarge(wanted, () => findPassing(clickhouse, { ...wanted, passes }, { order, offset, limit }));
}

type EventPageRequest = { order: EventOrder; offset: number; limit: number };
type EventFilter = (event: { properties: string }) => boolean;

async function findPassing(
  clickhouse: ClickHouseClient,
  { passes, ...wanted }: FoundEventsQuery & { passes: EventFilter },
  { order, offset, limit }: EventPageRequest,
): Promise<FoundPage> {
  // The store preselects events that may match the filter, and this code checks them exactly. Nearly always all of them match, and one page
  // is enough.
  const found: FoundEvent[] = [];
  let skip = offset;
  let bytes = 0;
  for (let from = 0; found.length < limit; ) {
    if (wanted.bounds && from > PASSED_OVER_MAX) throw tooManyPassedOver();
    const request = skip + limit - found.length;
    const { events, is_cut } = await readPage(clickhouse, wanted, { order, offset: from, limit: request });
    const passing = events.filter(passes);
    for (const event of passing.slice(skip)) {
      found.push(event);
      bytes += event.properties.length;
    }
    if (bytes >= PAGE_BYTES) return { events: found, is_cut: true };
    skip = Math.max(0, skip - passing.length);
    if (events.length < request && !is_cut) break;
    from += events.length;
  }
  return { events: found, is_cut: false };
}

export async function countFoundEvents(clickhouse: ClickHouseClient, wanted: FoundEventsQuery): Promise<number> {
  const { conditions, params } = buildConditions(wanted);
  const passes = buildFilter(wanted);
  if (!passes) {
    const query = `select toString(count()) as n from current_events where ${conditions}`;
    const [row] = await loadRows<{ n: string }>(clickhouse, 'events', { query, params, signal: wanted.bounds?.signal });
    return Number(row!.n);
  }
  return runAsLarge(wanted, () => countPassing(clickhouse, { conditions, params, passes, bounds: wanted.bounds }));
}

async function countPassing(
  clickhouse: ClickHouseClient,
  {
    conditions,
    params,
    passes,
    bounds,
  }: { conditions: string; params: Record<string, unknown>; passes: EventFilter; bounds: QueryBounds | undefined },
): Promise<number> {
  const slicer = new TimeSlicer(bounds?.asker);
  let count = 0;
  try {
    const query = `select properties from current_events where ${conditions}`;
    const request = { query, query_params: params, ...(bounds ? { abort_signal: bounds.signal } : {}) };
    for await (const rows of streamRows<[string]>(clickhouse, request)) {
      for (const [properties] of rows) {
        if (passes({ properties })) count++;
        if (slicer.isOver()) await slicer.next(bounds?.signal);
      }
    }
  } catch (error) {
    throw toClickHouseFailure('count of events', error);
  }
  return count;
}

/** Number of preselected events that were read for a page, above which the query is rejected. */
const PASSED_OVER_MAX = 100_000;

function tooManyPassedOver(): Error {
  return invalid('property_filters', 'too few of the events pass that have to be looked at: ask for a shorter range');
}

const COLUMNS = `event_id, external_customer_id, customer_id, event_name, source, properties,
       toString(toUnixTimestamp64Micro(timestamp)) as timestamp_us,
       toString(toUnixTimestamp64Micro(received_at)) as received_at_us, partition, toString(offset) as offset_text`;

type FoundEventRow = Omit<FoundEvent, 'timestamp_us' | 'received_at_us' | 'offset'> & {
  timestamp_us: string;
  received_at_us: string;
  offset_text: string;
};
type PageRow = FoundEventRow & { of_page: string };

function toFoundEvent({ offset_text, ...row }: FoundEventRow): FoundEvent {
  const { timestamp_us, received_at_us } = row;
  return {
    ...row,
    timestamp_us: Number(timestamp_us),
    received_at_us: Number(received_at_us),
    offset: Number(offset_text),
  };
}

/**
 * Reads a page. If there are no corrections and the page is short, as usual, it reads accepted events only, and most columns only for the
 * page. Excluding voided events, inserting replacements and cutting long pages costs the engine four times as much, before it reads a row.
 */
async function readPage(
  clickhouse: ClickHouseClient,
  wanted: FoundEventsQuery,
  page: EventPageRequest,
): Promise<FoundPage> {
  const events = CORRECTED.has(clickhouse) ? undefined : await plainPage(clickhouse, wanted, page);
  return events ? { events, is_cut: false } : correctedPage(clickhouse, wanted, page);
}

/**
 * Clients of installations in which an event was corrected. Corrections are permanent, so they are not searched for
 * again.
 */
const CORRECTED = new WeakSet<ClickHouseClient>();

/** Whether any event of any tenant was corrected: the number of rows of a table is known without reading it. */
const CORRECTIONS = 'select count() from event_corrections';

/**
 * Reads a page without corrections; undefined if any event was corrected, or if the page is too long for one answer.
 */
async function plainPage(
  clickhouse: ClickHouseClient,
  wanted: FoundEventsQuery,
  { order, offset, limit }: EventPageRequest,
): Promise<FoundEvent[] | undefined> {
  const { conditions, params } = buildConditions(wanted);
  const request = { params: { ...params, limit, offset }, signal: wanted.bounds?.signal };
  try {
    const rows = await loadRows<FoundEventRow & { corrections: string }>(clickhouse, 'events', {
      ...request,
      query: `select ${COLUMNS}, toString((${CORRECTIONS})) as corrections from events where ${conditions}
        order by ${sortedBy(order)} limit {limit:UInt32} offset {offset:UInt64}`,
      settings: { max_result_bytes: String(PAGE_BYTES) },
    });
    const corrections = rows[0]?.corrections ?? (await countCorrections(clickhouse));
    if (corrections !== '0') CORRECTED.add(clickhouse);
    return corrections === '0' ? rows.map(({ corrections: _none, ...row }) => toFoundEvent(row)) : undefined;
  } catch (error) {
    if (isTooLong(error)) return undefined;
    throw error;
  }
}

async function countCorrections(clickhouse: ClickHouseClient): Promise<string> {
  const query = `select toString((${CORRECTIONS})) as corrections`;
  const [row] = await loadRows<{ corrections: string }>(clickhouse, 'corrections', { query });
  return row!.corrections;
}

function isTooLong(error: unknown): boolean {
  return (
    error instanceof Error && error.cause instanceof ClickHouseError && error.cause.code === TOO_MANY_ROWS_OR_BYTES
  );
}

const TOO_MANY_ROWS_OR_BYTES = '396';

function sortedBy({ by, direction }: EventOrder): string {
  const columns = by === 'event_name' ? ['event_name', 'timestamp', 'event_id'] : ['timestamp', 'event_id'];
  return columns.map((column) => `${column} ${direction}`).join(', ');
}

/** Reads the positions of the page from narrow columns first, then its events, so that properties are read for few rows only. */
async function correctedPage(
  clickhouse: ClickHouseClient,
  wanted: FoundEventsQuery,
  { order, offset, limit }: EventPageRequest,
): Promise<FoundPage> {
  const { conditions, params } = buildConditions(wanted);
  const sorted = sortedBy(order);
  const rows = await loadRows<PageRow>(clickhouse, 'events', {
    query: `
      select ${COLUMNS}, toString(of_page) as of_page from (
        select *, count() over () as of_page,
               sum(length(properties)) over (order by ${sorted} rows between unbounded preceding and current row) as bytes
          from current_events
         where ${conditions} and (timestamp, event_id) in
               (select timestamp, event_id from current_events where ${conditions} order by ${sorted} limit {limit:UInt32} offset {offset:UInt64}))
       where bytes - length(properties) < {page_bytes:UInt64}
       order by ${sorted}`,
    params: { ...params, limit, offset, page_bytes: PAGE_BYTES },
    signal: wanted.bounds?.signal,
  });
  const events = rows.map(({ of_page: _all, ...row }) => toFoundEvent(row));
  return { events, is_cut: events.length < Number(rows[0]?.of_page ?? 0) };
}

function buildConditions(wanted: FoundEventsQuery): { conditions: string; params: Record<string, unknown> } {
  const params: Record<string, unknown> = { tenant_id: wanted.tenant_id, environment_id: wanted.environment_id };
  const conditions = ['tenant_id = {tenant_id:String}', 'environment_id = {environment_id:String}'];
  const equal = { external_customer_id: 'String', event_name: 'String', event_id: 'String', source: 'String' } as const;
  for (const [column, type] of Object.entries(equal)) {
    const value = wanted[column as keyof typeof equal];
    if (value === null || value === undefined) continue;
    conditions.push(`${column} = {${column}:${type}}`);
    params[column] = value;
  }
  const time = (name: string, at: number) => {
    params[name] = at;
    return `fromUnixTimestamp64Micro({${name}:Int64}, 'UTC')`;
  };
  if (typeof wanted.start_us === 'number') conditions.push(`timestamp >= ${time('start', wanted.start_us)}`);
  if (typeof wanted.end_us === 'number') conditions.push(`timestamp < ${time('end', wanted.end_us)}`);
  for (const [name, sign] of [
    ['earlier_than', '<'],
    ['later_than', '>'],
  ] as const) {
    const place = wanted[name];
    if (!place) continue;
    conditions.push(`timestamp ${sign}= ${time(name, place.timestamp_us)}`);
    conditions.push(`(timestamp, event_id) ${sign} (${time(name, place.timestamp_us)}, {${name}_id:String})`);
    params[`${name}_id`] = place.event_id;
  }
  for (const [index, [key, values]] of Object.entries(wanted.property_filters ?? {}).entries()) {
    conditions.push(mayPass(index));
    params[`key_${index}`] = key;
    params[`values_${index}`] = values;
    // The engine distinguishes 0 from -0. Adding zero removes the sign, both in these parameters and in the condition.
    params[`numbers_${index}`] = values.map((value) => Number(value) + 0).filter(Number.isFinite);
  }
  return { conditions: conditions.join(' and '), params };
}

/**
 * SQL condition that preselects events: all matching ones pass, and few others. It compares numbers as floats, and JSON that the engine
 * cannot parse, such as very large numbers, passes.
 */
function mayPass(index: number): string {
  const key = `{key_${index}:String}`;
  return `multiIf(
    JSONType(properties, ${key}) = 'String', JSONExtractString(properties, ${key}) in {values_${index}:Array(String)},
    JSONType(properties, ${key}) = 'Bool', if(JSONExtractBool(properties, ${key}), 'true', 'false') in {values_${index}:Array(String)},
    JSONType(properties, ${key}) in ('Int64', 'UInt64', 'Double'), JSONExtractFloat(properties, ${key}) + 0 in {numbers_${index}:Array(Float64)},
    not isValidJSON(properties))`;
}

function buildFilter({ property_filters }: FoundEventsQuery): EventFilter | undefined {
  if (!property_filters || Object.keys(property_filters).length === 0) return undefined;
  const passes = compilePropertyFilters(property_filters);
  return ({ properties }) => passes(propertiesIn(properties));
}
