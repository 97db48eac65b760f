/** GET /events/names and /events/properties: names and properties of recent events, for menus. */
import { z } from 'zod';
import { canRead } from '../../../core/foundation/access/role.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import { wholeNumber } from '../../../core/foundation/record.ts';
import { formatUs, toUs, US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { listSeenNames, listSeenProperties } from '../../../storage/events/seen-events.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { type Context, type Route, route } from '../../http/route.ts';
import { withBounds } from '../usage/query-fields.ts';

const days = wholeNumber
  .pipe(z.int().min(1).max(31))
  .default(7)
  .meta({ description: 'Number of days before now from which events are read, 1 to 31. Default: 7.' });
const shared = { method: 'get', tag: 'Events', access: 'event:read', success: 200 } as const;

export const SeenNamesAnswer = z
  .object({
    items: z
      .array(
        z
          .object({
            event_name: z.string().meta({ description: 'Name of the events.' }),
            event_count: z.string().meta({ description: 'Number of events with the name, as decimal text.' }),
            first_seen_at: z.string().meta({ description: 'Earliest timestamp of these events.' }),
            last_seen_at: z.string().meta({ description: 'Latest timestamp of these events.' }),
            meter_ids: z.array(z.string()).nullable().meta({
              description: 'Published meters of the name; null without the permission to read meters.',
            }),
          })
          .meta({ id: 'SeenEventName' }),
      )
      .meta({ description: 'Names, the most frequent first.' }),
  })
  .meta({ id: 'ListEventNamesResponse' });

export const SeenPropertiesAnswer = z
  .object({
    items: z
      .array(
        z
          .object({
            property: z.string().meta({ description: 'Key in the properties of the events.' }),
            value_type: z.enum(['number', 'string', 'boolean', 'object', 'array', 'null', 'mixed']).meta({
              description: 'JSON type of the values that are not null; null if there are none, mixed if they differ.',
            }),
            event_count: z
              .string()
              .meta({ description: 'Number of the read events that have the property, as decimal text.' }),
            sample_values: z.array(z.string()).meta({
              description: 'Up to 10 frequent values as text, of at most 200 characters each.',
            }),
          })
          .meta({ id: 'SeenEventProperty' }),
      )
      .meta({ description: 'Properties, the most frequent first.' }),
  })
  .meta({ id: 'ListEventPropertiesResponse' });

export const seenRoutes: Route[] = [
  route({
    ...shared,
    path: '/events/names',
    operation_id: 'listEventNames',
    summary: 'List names of recent events',
    description:
      'Returns the names of events with a timestamp in the last days, with or without a meter, at most 1,000. ' +
      'Corrections are not applied.',
    query: z.object({ days }),
    answer: SeenNamesAnswer,
    handle: async ({ query }, context) => {
      const start_us = toUs(context.now.getTime()) - query.days * US_PER_DAY;
      const { services, scope } = context;
      const names = await withBounds(context, (bounds) =>
        listSeenNames(services.clickhouse, scope, { start_us, bounds }),
      );
      const meterIds = await loadMeterIds(
        names.map(({ event_name }) => event_name),
        context,
      );
      const items = names.map(({ event_name, event_count, first_us, last_us }) => ({
        event_name,
        event_count,
        first_seen_at: formatUs(first_us),
        last_seen_at: formatUs(last_us),
        meter_ids: meterIds && (meterIds.get(event_name) ?? []),
      }));
      return { items };
    },
  }),
  route({
    ...shared,
    path: '/events/properties',
    operation_id: 'listEventProperties',
    summary: 'List properties of recent events',
    description:
      'Returns the properties of the newest 10,000 events with the name and a timestamp in the last days, at most ' +
      '1,000. Corrections are not applied.',
    query: z.object({ event_name: z.string().trim().min(1).meta({ description: 'Name of the events.' }), days }),
    answer: SeenPropertiesAnswer,
    handle: async ({ query: { event_name, days: count } }, context) => {
      const start_us = toUs(context.now.getTime()) - count * US_PER_DAY;
      const { services, scope } = context;
      const found = await withBounds(context, (bounds) =>
        listSeenProperties(services.clickhouse, scope, { start_us, event_name, bounds }),
      );
      const items = found.map(({ types, ...one }) => ({
        ...one,
        value_type: types.length > 1 ? 'mixed' : (types[0] ?? 'null'),
      }));
      return { items };
    },
  }),
];

/** Ids of the published meters by event name; null without the permission to read meters. */
async function loadMeterIds(
  event_names: readonly string[],
  { scope, services, principal }: Context,
): Promise<Map<string, string[]> | null> {
  if (!canRead(principal, 'meter')) return null;
  if (event_names.length === 0) return new Map();
  const meters = await MeterModel.in(scope, services.postgres)
    .select('id', 'event_name')
    .whereIn('event_name', [...event_names])
    .where('status', 'published')
    .orderBy('id');
  const byName = groupBy(meters, ({ event_name }) => event_name);
  return new Map(Array.from(byName, ([name, own]) => [name, own.map(({ id }) => id)]));
}
