/** GET /events/monitoring: number of events, and lag of their processing. A number that cannot be read is an error. */
import { z } from 'zod';
import { invalid } from '../../../core/foundation/error.ts';
import {
  ceilToMs,
  formatUs,
  type Microseconds,
  toMs,
  toUs,
  US_PER_DAY,
} from '../../../core/foundation/time/instant.ts';
import { checkRange } from '../../../core/foundation/time/range.ts';
import { windowStarts } from '../../../core/foundation/time/window.ts';
import { countEvents, countUnprocessed, postProcessingLag } from '../../../storage/events/monitoring.ts';
import { type Route, route } from '../../http/route.ts';
import { anyTimezone, anyWindowSize, checkWindows, instantUs } from '../usage/query-fields.ts';

const MonitoringQuery = z.object({
  start_time: instantUs.meta({ description: 'Earliest instant of the events, inclusive. It requires `end_time`.' }),
  end_time: instantUs.meta({ description: 'Exclusive end of the events. It requires `start_time`.' }),
  window_size: anyWindowSize.meta({ description: 'Size of the windows. Default: no windows.' }),
  timezone: anyTimezone.meta({ description: 'IANA timezone in which days and longer windows begin. Default: UTC.' }),
});

export const MonitoringAnswer = z
  .object({
    total_count: z.int().meta({ description: 'Number of events in the range.' }),
    consumption_lag: z.int().meta({
      description:
        'Number of accepted events of all tenants that are not in the stores yet; on Kafka, the number of batches.',
    }),
    post_processing_lag: z
      .int()
      .meta({ description: 'Number of meters whose past is still being counted, plus waiting corrections.' }),
    points: z
      .array(
        z.object({
          timestamp: z.string().meta({ description: 'Start of the window.' }),
          event_count: z.int().meta({ description: 'Number of events in the window.' }),
        }),
      )
      .nullable()
      .meta({ description: 'Counts per window; null without `window_size`.' }),
  })
  .meta({ id: 'GetMonitoringDataResponse' });

export const monitoringRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/monitoring',
    operation_id: 'getEventsMonitoring',
    summary: 'Get event counts and lag',
    description:
      'Counts the events of the range by their own time, in windows if `window_size` is set. Default range: the last 24 hours. A range with only one end is refused. The lags are current.',
    tag: 'Events',
    access: 'event:read',
    query: MonitoringQuery,
    success: 200,
    answer: MonitoringAnswer,
    async handle({ query }, { scope, services, now }) {
      const range = monitoredRange(query, now);
      checkWindows(range, query.window_size);
      const starts = query.window_size
        ? listWindowStarts(range, query.window_size, query.timezone ?? 'UTC')
        : [range.start_us];
      const [counts, consumption_lag, post_processing_lag] = await Promise.all([
        countEvents(services.clickhouse, scope, { ...range, starts }),
        countUnprocessed(services),
        postProcessingLag(services, scope),
      ]);
      return {
        total_count: counts.reduce((sum, count) => sum + count.event_count, 0),
        consumption_lag,
        post_processing_lag,
        points: query.window_size
          ? counts.map(({ start_us, event_count }) => ({ timestamp: formatUs(start_us), event_count }))
          : null,
      };
    },
  }),
];

/** Default range: the last 24 hours. A range with only one end is refused. */
function monitoredRange({ start_time, end_time }: z.output<typeof MonitoringQuery>, now: Date) {
  if (start_time === null && end_time === null) {
    const end_us = toUs(now.getTime());
    return { start_us: end_us - US_PER_DAY, end_us };
  }
  if (start_time === null) throw invalid('start_time', 'is required with end_time');
  if (end_time === null) throw invalid('end_time', 'is required with start_time');
  return checkRange({ start_us: start_time, end_us: end_time });
}

function listWindowStarts(
  range: { start_us: Microseconds; end_us: Microseconds },
  size: Parameters<typeof windowStarts>[2],
  timezone: string,
) {
  const from = toMs(range.start_us);
  return windowStarts(from, ceilToMs(range.end_us), size, { timezone }).map(toUs);
}
