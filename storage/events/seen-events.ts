/**
 * Names and properties of recently accepted events, for menus. Corrections are not applied. Both read an unknown number of raw events, so they
 * run in the slot for large queries, where they delay no small query of another tenant.
 */
import { z } from 'zod';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Microseconds } from '../../core/foundation/time/instant.ts';
import { type ClickHouseClient, defineStatement } from '../clickhouse/clickhouse.ts';
import { type QueryBounds, runAsLarge } from '../concurrency/query-bounds.ts';

const NAMES_MAX = 1_000;
const PROPERTIES_MAX = 1_000;
/** Number of the newest events whose properties are read. */
const SAMPLED_EVENTS_MAX = 10_000;
const SAMPLES = 10;
const SAMPLE_CHARACTERS = 200;

const scopeShape = { tenant_id: z.string(), environment_id: z.string(), start_us: z.number() };
const SEEN = `tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
           and timestamp >= fromUnixTimestamp64Micro({start_us:Int64}, 'UTC')`;

const seenNames = defineStatement({
  name: 'seen event names',
  sql: `select event_name, toString(count()) as event_count,
               toString(toUnixTimestamp64Micro(min(timestamp))) as first_us,
               toString(toUnixTimestamp64Micro(max(timestamp))) as last_us
          from events where ${SEEN}
         group by event_name order by count() desc, event_name limit ${NAMES_MAX}`,
  params: z.object(scopeShape),
  row: z.object({
    event_name: z.string(),
    event_count: z.string(),
    first_us: z.coerce.number(),
    last_us: z.coerce.number(),
  }),
});

/** The first character of a JSON value states its type. */
const TYPE = `multiIf(startsWith(raw, '"'), 'string', startsWith(raw, '{'), 'object', startsWith(raw, '['), 'array',
                      raw in ('true', 'false'), 'boolean', raw = 'null', 'null', 'number')`;
const SAMPLE = `leftUTF8(if(startsWith(raw, '"'), JSONExtractString(raw), raw), ${SAMPLE_CHARACTERS})`;

const seenProperties = defineStatement({
  name: 'seen event properties',
  sql: `select property, toString(count()) as event_count, arraySort(groupUniqArrayIf(${TYPE}, raw != 'null')) as types,
               topKIf(${SAMPLES})(${SAMPLE}, raw != 'null') as sample_values
          from (select pair.1 as property, pair.2 as raw
                  from (select properties from events
                         where ${SEEN} and event_name = {event_name:String}
                         order by timestamp desc, event_id limit ${SAMPLED_EVENTS_MAX})
                 array join JSONExtractKeysAndValuesRaw(properties) as pair)
         group by property order by count() desc, property limit ${PROPERTIES_MAX}`,
  params: z.object({ ...scopeShape, event_name: z.string() }),
  row: z.object({
    property: z.string(),
    event_count: z.string(),
    types: z.array(z.enum(['string', 'number', 'boolean', 'object', 'array'])),
    sample_values: z.array(z.string()),
  }),
});

type SeenQuery = { readonly start_us: Microseconds; readonly bounds: QueryBounds };

/** Names by the time of the events, the most frequent first, at most 1,000. */
export function listSeenNames(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id }: Scope,
  { start_us, bounds }: SeenQuery,
): Promise<z.output<(typeof seenNames)['row']>[]> {
  const params = { tenant_id, environment_id, start_us };
  return runAsLarge({ tenant_id, bounds }, () => seenNames.run(clickhouse, params, { abort_signal: bounds.signal }));
}

/** Properties of the newest 10,000 events with this name, the most frequent first, at most 1,000. */
export function listSeenProperties(
  clickhouse: ClickHouseClient,
  { tenant_id, environment_id }: Scope,
  { start_us, event_name, bounds }: SeenQuery & { readonly event_name: string },
): Promise<z.output<(typeof seenProperties)['row']>[]> {
  const params = { tenant_id, environment_id, start_us, event_name };
  const options = { abort_signal: bounds.signal };
  return runAsLarge({ tenant_id, bounds }, () => seenProperties.run(clickhouse, params, options));
}
