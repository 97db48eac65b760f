/**
 * Events that are not counted, newest receipt first: input that is no event, values that a meter cannot use (`event_outcomes`), and events
 * that no meter may match. Both lists share one order, the time of receipt and the position in the log, so that they can be merged.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { type ClickHouseClient, loadRows, SMALL_ANSWER } from '../clickhouse/clickhouse.ts';
import { type QueryBounds, runAsSmall } from '../concurrency/query-bounds.ts';

/** Place in a list in the order of receipt, newest first. Several entries of one event, for several meters, are in the order of `meter_id`. */
export type ReceiptPlace = {
  readonly received_at_us: Microseconds;
  readonly partition: number;
  readonly offset: number;
  readonly position: number;
  readonly meter_id: string;
};

export type UncountedRow = ReceiptPlace & {
  readonly event_id: string;
  readonly event_name: string;
  readonly external_customer_id: string;
};
type OutcomeOfEvent = UncountedRow & { readonly outcome: RejectedOutcome; readonly reason: string };
export type UnmatchedCandidate = UncountedRow & { readonly properties: string };

export type RejectedOutcome = 'conflict' | 'dead_letter' | 'unusable';

export type UncountedQuery = {
  readonly event_name: string | null;
  readonly external_customer_id: string | null;
  /** Range of the time of receipt. */
  readonly start_us: Microseconds | null;
  readonly end_us: Microseconds | null;
  /** Place after which the list continues. */
  readonly after: ReceiptPlace | null;
  readonly limit: number;
  /** Absent in a job. */
  readonly bounds?: QueryBounds | undefined;
};

const ORDER = 'received_at desc, partition desc, offset desc, position desc, meter_id';
const PLACE = `toString(toUnixTimestamp64Micro(received_at)) as received_at_us, partition, toString(offset) as offset_text, position`;

/** A property of an event in its bytes; '' if they are no JSON. */
const sent = (field: string) => `trimBoth(JSONExtractString(body, '${field}'))`;

/** Lists outcomes. Corrected events are omitted: their content has changed since. */
export async function listRejectedOutcomes(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { outcomes, ...query }: UncountedQuery & { readonly outcomes: readonly RejectedOutcome[] },
): Promise<OutcomeOfEvent[]> {
  if (outcomes.length === 0) return [];
  const { conditions, params } = buildConditions(scope, query, (field) => {
    const stored = `select event_id from events where ${SCOPE} and ${field} = {${field}:String}`;
    return `if(outcome = 'unusable', event_id in (${stored}), ${sent(field)} = {${field}:String})`;
  });
  const filters = [...conditions, 'outcome in {outcomes:Array(String)}', NOT_CORRECTED];
  return load(
    clickhouse,
    { ...scope, ...query },
    {
      query: `select event_id, outcome, meter_id, reason, ${PLACE}, ${sent('event_name')} as event_name,
                   ${sent('external_customer_id')} as external_customer_id
              from event_outcomes where ${filters.join(' and ')}
             order by ${ORDER} limit 1 by partition, offset, position, outcome, meter_id limit {limit:UInt32}`,
      params: { ...params, outcomes },
    },
  );
}

/** Lists events by names other than the given ones, whose events all count. The caller checks the others by their meters. */
export function listUnmatchedCandidates(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { counted_names, ...query }: UncountedQuery & { readonly counted_names: readonly string[] },
): Promise<UnmatchedCandidate[]> {
  const { conditions, params } = buildConditions(scope, query, (field) => `${field} = {${field}:String}`);
  const filters = [...conditions, 'event_name not in {counted_names:Array(String)}'];
  return load(
    clickhouse,
    { ...scope, ...query },
    {
      query: `select event_id, '' as meter_id, event_name, external_customer_id, properties, ${PLACE}
              from current_events where ${filters.join(' and ')} order by ${ORDER} limit {limit:UInt32}`,
      params: { ...params, counted_names },
    },
  );
}

/** Names and customers of stored events by id, from the rows of their identities. */
export async function loadEventNames(
  clickhouse: ClickHouseClient,
  scope: Scope,
  hashes: readonly bigint[],
): Promise<Map<string, { event_name: string; external_customer_id: string }>> {
  if (hashes.length === 0) return new Map();
  const rows = await loadRows<{ event_id: string; event_name: string; external_customer_id: string }>(
    clickhouse,
    'names of events',
    {
      query: `select event_id, event_name, external_customer_id from event_identities
               where id_hash in {hashes:Array(UInt64)} and ${SCOPE}`,
      params: { ...toScopeParams(scope), hashes },
      settings: SMALL_ANSWER,
    },
  );
  return new Map(rows.map(({ event_id, ...names }) => [event_id, names]));
}

const SCOPE = 'tenant_id = {tenant_id:String} and environment_id = {environment_id:String}';
const NOT_CORRECTED = `(outcome != 'unusable' or event_id not in (select event_id from event_corrections where ${SCOPE}))`;

const toScopeParams = ({ tenant_id, environment_id }: Scope) => ({ tenant_id, environment_id });

/** `buildEqual` builds the condition that a field of the event has the value of the parameter of this name. */
function buildConditions(
  scope: Scope,
  { event_name, external_customer_id, start_us, end_us, after }: Omit<UncountedQuery, 'limit' | 'bounds'>,
  buildEqual: (field: string) => string,
) {
  const conditions = [SCOPE];
  const params: Record<string, unknown> = toScopeParams(scope);
  for (const [field, value] of Object.entries({ event_name, external_customer_id })) {
    if (value === null) continue;
    conditions.push(buildEqual(field));
    params[field] = value;
  }
  const time = (name: string) => `fromUnixTimestamp64Micro({${name}:Int64}, 'UTC')`;
  if (start_us !== null) conditions.push(`received_at >= ${time('start')}`);
  if (end_us !== null) conditions.push(`received_at < ${time('end')}`);
  Object.assign(params, { start: start_us ?? 0, end: end_us ?? 0 });
  if (after !== null) {
    const place = `(${time('after')}, {after_partition:UInt16}, {after_offset:UInt64}, {after_position:UInt32})`;
    const own = '(received_at, partition, offset, position)';
    // The first condition follows from the second, and excludes whole months.
    conditions.push(`received_at <= ${time('after')}`);
    conditions.push(`(${own} < ${place} or (${own} = ${place} and meter_id > {after_meter:String}))`);
    Object.assign(params, {
      after: after.received_at_us,
      after_partition: after.partition,
      after_offset: after.offset,
      after_position: after.position,
      after_meter: after.meter_id,
    });
  }
  return { conditions, params };
}

async function load<Row extends ReceiptPlace>(
  clickhouse: ClickHouseClient,
  { tenant_id, limit, bounds }: Scope & Pick<UncountedQuery, 'limit' | 'bounds'>,
  { query, params }: { query: string; params: Record<string, unknown> },
): Promise<Row[]> {
  type Raw = Omit<Row, 'received_at_us' | 'offset'> & { received_at_us: string; offset_text: string };
  const request = { query, params: { ...params, limit }, signal: bounds?.signal };
  const rows = await runAsSmall({ tenant_id, bounds }, () => loadRows<Raw>(clickhouse, 'uncounted events', request));
  return rows.map(({ received_at_us, offset_text, ...row }) => ({
    ...row,
    received_at_us: Number(received_at_us),
    offset: Number(offset_text),
  })) as unknown as Row[];
}

/** Negative if `a` comes before `b` in the list. */
export function comparePlaces(a: ReceiptPlace, b: ReceiptPlace): number {
  return (
    b.received_at_us - a.received_at_us ||
    b.partition - a.partition ||
    b.offset - a.offset ||
    b.position - a.position ||
    (a.meter_id < b.meter_id ? -1 : Number(a.meter_id > b.meter_id))
  );
}
