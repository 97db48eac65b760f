/**
 * Input of the second count (actions/operations/audit/second-count.ts): events as sent, and corrections as accepted. Every other reader of
 * events uses ClickHouse's table of corrections; nothing here does, so the second count also finds faults of that table.
 */

import { type Scope } from '../../core/foundation/scope.ts';
import { type Microseconds, US_PER_DAY } from '../../core/foundation/time/instant.ts';
import { type ClickHouseClient, loadRows, streamRows, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { loadAcceptedEvents } from '../events/by-id.ts';
import type { Database } from '../foundation/stores.ts';

export type SentEvent = {
  readonly event_id: string;
  readonly event_name: string;
  readonly external_customer_id: string;
  readonly customer_id: string;
  readonly source: string;
  readonly timestamp_us: Microseconds;
  /** The JSON text of the object. */
  readonly properties: string;
  readonly partition: number;
  readonly offset: number;
};

type AcceptedCorrection = {
  readonly id: string;
  readonly event_id: string;
  /** The JSON text of the corrected event; null for a void. */
  readonly replacement: string | null;
};

const COLUMNS = `event_id, event_name, external_customer_id, customer_id, source, toUnixTimestamp64Micro(timestamp),
  properties, partition, offset`;
type SentEventRow = [
  event_id: string,
  event_name: string,
  external_customer_id: string,
  customer_id: string,
  source: string,
  timestamp_us: Microseconds,
  properties: string,
  partition: number,
  offset: number,
];

function toSentEvent(row: SentEventRow): SentEvent {
  const [event_id, event_name, external_customer_id, customer_id, source, timestamp_us, properties, partition, offset] =
    row;
  return {
    event_id,
    event_name,
    external_customer_id,
    customer_id,
    source,
    timestamp_us,
    properties,
    partition,
    offset,
  };
}

type CustomersOfDay = Scope & {
  readonly event_names: readonly string[];
  readonly external_customer_ids: readonly string[];
  /** UTC, as days since 1970. */
  readonly day: number;
};

/** Yields the events of one UTC day in batches. */
export async function* streamSentEventsByDay(
  clickhouse: ClickHouseClient,
  { day, ...params }: CustomersOfDay,
): AsyncGenerator<SentEvent[]> {
  const query = `
    select ${COLUMNS} from events
     where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
       and external_customer_id in {external_customer_ids:Array(String)} and event_name in {event_names:Array(String)}
       and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC') and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')`;
  const query_params = { ...params, start_us: day * US_PER_DAY, end_us: (day + 1) * US_PER_DAY };
  try {
    for await (const rows of streamRows<SentEventRow>(clickhouse, { query, query_params })) yield rows.map(toSentEvent);
  } catch (error) {
    throw toClickHouseFailure('events as they were sent', error);
  }
}

const IDS_PER_QUESTION = 5_000;

export async function loadSentEvents(
  clickhouse: ClickHouseClient,
  scope: Scope,
  event_ids: readonly string[],
): Promise<SentEvent[]> {
  const events: SentEvent[] = [];
  for (let from = 0; from < event_ids.length; from += IDS_PER_QUESTION) {
    const some = event_ids.slice(from, from + IDS_PER_QUESTION);
    type Row = Omit<SentEvent, 'timestamp_us' | 'offset'> & { at_us: string; log_offset: string };
    const buildQuery = (where: string) => `
      select event_id, event_name, external_customer_id, customer_id, source, toString(toUnixTimestamp64Micro(timestamp)) as at_us,
             properties, partition, toString(offset) as log_offset
        from events where ${where}`;
    const rows = await loadAcceptedEvents<Row>(clickhouse, { scope, event_ids: some, buildQuery });
    for (const { at_us, log_offset, ...row } of rows)
      events.push({ ...row, timestamp_us: Number(at_us), offset: Number(log_offset) });
  }
  return events;
}

/** Lists up to `limit` customers that have events of this name on the day. */
export async function listCustomersByDay(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id }: Scope,
  { event_name, day, limit }: { event_name: string; day: number; limit: number },
): Promise<string[]> {
  const rows = await loadRows<{ customer: string }>(clickhouse, 'customers of a day', {
    query: `
      select distinct external_customer_id as customer from events
       where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and event_name = {event_name:String}
         and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC') and timestamp < fromUnixTimestamp64Micro({end_us:Int64}, 'UTC')
       limit {limit:UInt32}`,
    params: {
      tenant_id,
      environment_id,
      event_name,
      limit,
      start_us: day * US_PER_DAY,
      end_us: (day + 1) * US_PER_DAY,
    },
  });
  return rows.map(({ customer }) => customer);
}

/**
 * SQL condition: the correction is in effect. While a repair applies it again, its state is `requested`, but `applied_number` shows that it
 * was applied before.
 */
export const IN_EFFECT = `(state = 'applied' or (state = 'requested' and applied_number > 0))`;

/** Corrections of these events that are in effect, in the order in which they apply. */
export async function listAcceptedCorrections(
  database: Database,
  { tenant_id, environment_id }: Scope,
  event_ids: readonly string[],
): Promise<AcceptedCorrection[]> {
  const { rows } = await database.raw(
    `select id, event_id, replacement from event_corrections
      where tenant_id = ? and environment_id = ? and event_id = any(?) and ${IN_EFFECT} order by id`,
    [tenant_id, environment_id, [...event_ids]],
  );
  return rows;
}

const PAGE = 5_000;

/** Lists the corrected events, each once. `newest` limits how many of the newest corrections are read. */
export async function listCorrectedEvents(
  database: Database,
  newest: number | undefined,
): Promise<(Scope & { readonly event_id: string })[]> {
  const { rows } = await database.raw(
    `select distinct tenant_id, environment_id, event_id from (
       select tenant_id, environment_id, event_id from event_corrections where ${IN_EFFECT} order by id desc limit ?) as newest`,
    [newest ?? null],
  );
  return rows;
}

/**
 * Lists the replacements of an environment that may name one of these customers; without a list of customers, all replacements. The ids are
 * searched in the JSON text; a text with a backslash is always listed, because an id in it may be escaped.
 */
export async function* streamReplacements(
  database: Database,
  { tenant_id, environment_id }: Scope,
  customers: readonly string[] | null,
): AsyncGenerator<{ readonly event_id: string; readonly replacement: string }[]> {
  const filter =
    customers === null
      ? ''
      : `and (strpos(replacement, '\\') > 0
              or exists (select from unnest(:customers::text[]) as c(name) where strpos(replacement, '"' || c.name || '"') > 0))`;
  for (let after = '0'; ; ) {
    const { rows } = await database.raw(
      `select id, event_id, replacement from event_corrections
        where tenant_id = :tenant_id and environment_id = :environment_id and id > :after and ${IN_EFFECT}
          and replacement is not null ${filter} order by id limit ${PAGE}`,
      { tenant_id, environment_id, after, ...(customers === null ? {} : { customers: [...customers] }) },
    );
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE) return;
    after = rows.at(-1).id;
  }
}
