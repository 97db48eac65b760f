/**
 * Computes the bucket rows of a meter from the raw events alone, for back-fills, rebuilds and audits. It works by UTC days, because no row
 * is longer than that.
 */

import { groupBy } from '../../core/foundation/group-by.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { US_PER_DAY } from '../../core/foundation/time/instant.ts';
import { BucketAggregator, type BucketRow } from '../../core/metering/bucket-aggregator.ts';
import { type CompiledMeter, compiledMeter, measure } from '../../core/metering/compiled-meter.ts';
import { matches } from '../../core/metering/match.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import { TimeSlicer } from '../concurrency/time-slicer.ts';
import { type CustomerRange, listCustomerRanges } from '../events/customer-ranges.ts';
import {
  type CustomerDay,
  type DayOfEvents,
  listRawEventDays,
  type PositionedRawEvent,
  type RawEvent,
  type RawEventsQuery,
  streamCustomerDayEvents,
  streamPositionedEvents,
  streamRawEvents,
} from '../events/raw-events.ts';
import type { Stores } from '../foundation/stores.ts';
import { loadCountingMoment } from '../progress/counting-moment.ts';
import { loadBarriers } from '../progress/meter-versions.ts';

/** A meter version that is counted into rows; `before` is the exclusive end offset of its events per partition. */
export type CountedMeter = Scope & {
  readonly meter_id: string;
  readonly version: number;
  readonly meter: CompiledMeter;
  readonly before: ReadonlyMap<number, bigint>;
};

export type DaysWanted = {
  /** Half-open range of days since 1970, in UTC. */
  readonly days: readonly [number, number];
  /** Absent: all customers. */
  readonly external_customer_ids?: readonly string[] | undefined;
  readonly range?: CustomerRange | undefined;
};

export function toCountedMeter(
  version: Scope & { meter_id: string; version: number; definition: MeterDefinition | null },
  before: ReadonlyMap<number, bigint>,
): CountedMeter {
  const { tenant_id, environment_id, meter_id } = version;
  if (version.definition === null) throw new Error(`meter ${meter_id} has no definition`);
  return {
    tenant_id,
    environment_id,
    meter_id,
    version: version.version,
    meter: compiledMeter(version.definition),
    before,
  };
}

/**
 * Finds the version whose rows answer queries; undefined while its past is still being counted. `settling`: a version that is about to
 * become live.
 */
export async function findCountedMeter(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  query: { meter_id: string; before: ReadonlyMap<number, bigint>; settling?: number | undefined },
): Promise<CountedMeter | undefined> {
  const { meter_id, before, settling } = query;
  const { versions } = await loadCountingMoment(postgres, scope, meter_id);
  if (!versions || (versions.counting.state !== 'live' && versions.counting.version !== settling)) return undefined;
  const { newest, counting } = versions;
  const stop = newest === counting ? new Map<number, bigint>() : await loadBarriers(postgres, newest);
  const until = [...before].map(([partition, offset]) => {
    const end = stop.get(partition);
    return [partition, end !== undefined && end < offset ? end : offset] as const;
  });
  return toCountedMeter(counting, new Map(until));
}

/** Counts the rows of the days, without events whose value the meter cannot use. */
export function recountDays(
  stores: Pick<Stores, 'clickhouse'>,
  counted: CountedMeter,
  wanted: DaysWanted,
): Promise<BucketRow[]> {
  return recountDaysOfMeters(stores, [counted], wanted);
}

/** Returns the rows of the days, and reports each event whose value the meter cannot use, with the reason. */
export function recountDaysReporting(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  counted: CountedMeter,
  wanted: DaysWanted,
  unusable: (event: PositionedRawEvent, reason: string) => void,
): Promise<BucketRow[]> {
  return recounted([counted], streamPositionedEvents(clickhouse, rawWanted(counted, wanted)), unusable);
}

/** Counts the rows of several meters that count the same events (`toEventsKey`), in one read of them. */
export function recountDaysOfMeters(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  counted: readonly [CountedMeter, ...CountedMeter[]],
  wanted: DaysWanted,
): Promise<BucketRow[]> {
  return recounted(counted, streamRawEvents(clickhouse, rawWanted(counted[0], wanted)));
}

/** Maximum number of customer-days in one statement. */
const CUSTOMER_DAYS_MAX = 2_000;

/** Days to recount for meters that count the same events (`toEventsKey`). Null: all customers of the day. */
export type DaysToRecount = {
  readonly counted: readonly [CountedMeter, ...CountedMeter[]];
  readonly days: ReadonlyMap<number, ReadonlySet<string> | null>;
};

/** Counts the rows of customer-days. One statement reads the events of an environment, whatever their names. */
export async function* recountCustomerDays(
  stores: Pick<Stores, 'clickhouse'>,
  groups: readonly DaysToRecount[],
): AsyncGenerator<BucketRow> {
  for (const some of groupBy(groups, ({ counted: [first] }) => toOffsetsKey(first)).values()) {
    const customer_days: CustomerDay[] = [];
    for (const { counted, days } of some) {
      const { event_name } = counted[0].meter;
      for (const [day, customers] of days) {
        if (customers === null) yield* await recountDaysOfMeters(stores, counted, { days: [day, day + 1] });
        else
          for (const external_customer_id of customers) customer_days.push({ event_name, external_customer_id, day });
      }
    }
    const counted = some.flatMap((group) => group.counted) as [CountedMeter, ...CountedMeter[]];
    const { before, ...scope } = counted[0];
    for (let from = 0; from < customer_days.length; from += CUSTOMER_DAYS_MAX) {
      const wanted = { ...toScope(scope), before, customer_days: customer_days.slice(from, from + CUSTOMER_DAYS_MAX) };
      yield* await recounted(counted, streamCustomerDayEvents(stores.clickhouse, wanted));
    }
  }
}

/** Returns a key. Meters with one key count the same events; their aggregations may differ. */
export function toEventsKey(counted: CountedMeter): string {
  return JSON.stringify([counted.meter.event_name, toOffsetsKey(counted)]);
}

/** Returns a key, which is the same for meters of one environment with the same end offsets. */
function toOffsetsKey({ tenant_id, environment_id, before }: CountedMeter): string {
  const offsets = [...before].map(([partition, offset]) => [partition, String(offset)]);
  return JSON.stringify([tenant_id, environment_id, offsets]);
}

async function recounted<Event extends RawEvent>(
  counted: readonly [CountedMeter, ...CountedMeter[]],
  events: AsyncIterable<Event>,
  unusable?: (event: Event, reason: string) => void,
): Promise<BucketRow[]> {
  const [scope] = counted;
  const byName = groupBy(counted, ({ meter }) => meter.event_name);
  const slicer = new TimeSlicer();
  const aggregator = new BucketAggregator();
  for await (const event of events) {
    for (const { meter } of byName.get(event.event_name) ?? []) {
      if (!matches(meter, event.properties)) continue;
      const contribution = measure(meter, event);
      if (contribution.unusable === undefined) aggregator.add(scope, meter, contribution);
      else unusable?.(event, contribution.unusable);
    }
    if (slicer.isOver(counted.length)) await slicer.next();
  }
  const rows: BucketRow[] = [];
  for (const some of aggregator.drain()) {
    for (const row of some) rows.push(row);
    if (slicer.isOver(some.length)) await slicer.next();
  }
  return rows;
}

/** Lists the UTC days with events, in order, with their number of events. */
export async function listDaysWithEvents(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  counted: CountedMeter,
): Promise<DayOfEvents[]> {
  const { event_name } = counted.meter;
  return listRawEventDays(clickhouse, { ...toScope(counted), event_name, before: counted.before });
}

/** Divides the customers of a day into ranges of about `events_max` events, to be recounted one after the other. */
export function listRecountRanges(
  { clickhouse }: Pick<Stores, 'clickhouse'>,
  counted: CountedMeter,
  { day, events_max }: { day: number; events_max: number },
): Promise<CustomerRange[]> {
  const bounds = { start_us: day * US_PER_DAY, end_us: (day + 1) * US_PER_DAY };
  const { event_name } = counted.meter;
  return listCustomerRanges(
    clickhouse,
    { ...toScope(counted), event_name, ...bounds, before: counted.before },
    events_max,
  );
}

function rawWanted(
  counted: CountedMeter,
  { days: [from, until], external_customer_ids, range }: DaysWanted,
): RawEventsQuery {
  return {
    ...toScope(counted),
    event_name: counted.meter.event_name,
    before: counted.before,
    ranges: [[from * US_PER_DAY, until * US_PER_DAY]],
    ...(external_customer_ids ? { external_customer_ids } : {}),
    ...(range ? { range } : {}),
  };
}

function toScope({ tenant_id, environment_id }: Scope): Scope {
  return { tenant_id, environment_id };
}
