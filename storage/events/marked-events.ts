/**
 * Reads the events of a query in the state when the log was counted up to some marks: events before the marks, with the corrections before
 * them. The events are ordered by time and then by id, without a limit. The raw rows are streamed in order; replacements are few and are
 * merged from memory.
 */

import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { compareIds } from '../../core/metering/bucket.ts';
import { properties as propertiesIn } from '../../core/metering/event-text.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { streamResumableRows } from '../clickhouse/resumed-rows.ts';
import type { RawEvent } from './raw-events.ts';

type MarkedEventsQuery = Scope & {
  readonly event_name: string;
  readonly external_customer_ids: readonly string[];
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  /** First excluded offset of each partition; partitions that are not listed are excluded. */
  readonly marks: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
};

/** A raw event with the text of its properties as it was sent. */
export type MarkedEvent = RawEvent & { readonly properties_text: string };

export async function* streamMarkedEvents(
  clickhouse: ClickHouseClient,
  wanted: MarkedEventsQuery,
): AsyncGenerator<MarkedEvent> {
  const replaced: MarkedEvent[] = [];
  for await (const event of streamFrom(clickhouse, wanted, REPLACED)) replaced.push(event);
  let next = 0;
  for await (const event of streamFrom(clickhouse, wanted, AS_SENT)) {
    while (next < replaced.length && isBefore(replaced[next]!, event)) yield replaced[next++]!;
    yield event;
  }
  yield* replaced.slice(next);
}

function isBefore(a: MarkedEvent, b: MarkedEvent): boolean {
  if (a.timestamp_us !== b.timestamp_us) return a.timestamp_us < b.timestamp_us;
  return compareIds(a.event_id, b.event_id) < 0;
}

const SCOPE = 'tenant_id = {tenant_id:String} and environment_id = {environment_id:String}';
const BEFORE = `offset < transform(partition, {partitions:Array(UInt16)}, {before:Array(UInt64)}, toUInt64(0))`;
const CORRECTED = `from event_corrections where ${SCOPE} and ${BEFORE}`;

type MarkedEventsSource = { readonly from: string; readonly only: string };

const AS_SENT: MarkedEventsSource = {
  from: 'events',
  only: `${BEFORE} and event_id not in (select event_id ${CORRECTED})`,
};
/** Source of corrected events. A correction that two attempts wrote has two rows, of which one is read. */
const REPLACED: MarkedEventsSource = {
  from: `(select * ${CORRECTED} limit 1 by event_id, sequence)`,
  only: `action = 'replace' and (event_id, sequence) in (select event_id, max(sequence) ${CORRECTED} group by event_id)`,
};

/** SQL condition: the row follows the last one that was read. */
const AFTER =
  "({has_last:Bool} = false or (timestamp, event_id) > (fromUnixTimestamp64Micro({last_us:Int64}, 'UTC'), {last_id:String}))";

type MarkedEventRow = [
  customer: string,
  event_id: string,
  timestamp_us: Microseconds,
  source: string,
  properties: string,
];

async function* streamFrom(
  clickhouse: ClickHouseClient,
  { event_name, external_customer_ids, start_us, end_us, marks, signal, ...scope }: MarkedEventsQuery,
  { from, only }: MarkedEventsSource,
): AsyncGenerator<MarkedEvent> {
  const [first, ...others] = external_customer_ids;
  // With an equality on one customer, the order of the table is the order of the answer.
  const customersCondition =
    others.length === 0
      ? 'external_customer_id = {customer:String}'
      : 'external_customer_id in {customers:Array(String)}';
  const query = `
    select external_customer_id, event_id, toUnixTimestamp64Micro(timestamp), source, properties from ${from}
     where ${SCOPE} and ${customersCondition} and event_name = {event_name:String}
       and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC') and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')
       and ${only} and ${AFTER}
     order by timestamp, event_id`;
  const query_params = {
    tenant_id: scope.tenant_id,
    environment_id: scope.environment_id,
    event_name,
    ...(others.length === 0 ? { customer: first ?? '' } : { customers: external_customer_ids }),
    start_us,
    end_us,
    partitions: Object.keys(marks).map(Number),
    before: Object.values(marks).map(BigInt),
  };
  try {
    const questionAfter = (last: MarkedEventRow | null) => {
      const [, last_id = '', last_us = 0] = last ?? [];
      return { query, query_params: { ...query_params, has_last: last !== null, last_id, last_us } };
    };
    for await (const rows of streamResumableRows<MarkedEventRow>(clickhouse, questionAfter, { signal })) {
      for (const [external_customer_id, event_id, timestamp_us, source, text] of rows) {
        const properties = propertiesIn(text);
        const { length } = text;
        yield {
          event_id,
          event_name,
          external_customer_id,
          timestamp_us,
          source,
          properties,
          length,
          properties_text: text,
        };
      }
    }
  } catch (error) {
    throw toClickHouseFailure('the events of a proof', error);
  }
}
