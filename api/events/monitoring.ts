/** GET /events/monitoring: how many events came, and how far the processing is behind. What cannot be told is an error. */
import { z } from 'zod';
import { invalid } from '../../core/error.ts';
import { ceilToMs, formatUs, type Microseconds, toMs, toUs, US_PER_DAY } from '../../core/time/instant.ts';
import { windowStarts } from '../../core/time/window.ts';
import { countEvents, countUnprocessed, postProcessingLag } from '../../storage/events/monitoring.ts';
import { type Route, route } from '../http/route.ts';
import { anyTimezone, anyWindowSize, checkRange, checkWindows, instantUs } from './usage-query-fields.ts';

const MonitoringQuery = z.object({
  start_time: instantUs.meta({ description: 'Events at this instant or later; with `end_time`, or neither.' }),
  end_time: instantUs.meta({ description: 'Events before this instant.' }),
  window_size: anyWindowSize.meta({ description: 'Cuts the range into windows of this size.' }),
  timezone: anyTimezone.meta({ description: 'On whose clock days and longer windows begin; UTC when absent.' }),
});

const MonitoringAnswer = z
  .object({
    total_count: z.int().meta({ description: 'How many events of the range there are.' }),
    consumption_lag: z.int().meta({
      description: 'Accepted events that are not yet in the stores, of all tenants; on Kafka, batches of them.',
    }),
    post_processing_lag: z
      .int()
      .meta({ description: 'Meters whose past is still being counted, and corrections that wait.' }),
    points: z
      .array(
        z.object({
          timestamp: z.string().meta({ description: 'Where the window begins.' }),
          event_count: z.int().meta({ description: 'How many events are in it.' }),
        }),
      )
      .nullable()
      .meta({ description: 'By window, where `window_size` is stated; else null.' }),
  })
  .meta({ id: 'GetMonitoringDataResponse' });

export const monitoringRoutes: Route[] = [
  route({
    method: 'get',
    path: '/events/monitoring',
    operation_id: 'getEventsMonitoring',
    summary: 'Count events, and tell how far their processing is behind',
    description:
      'The number of events of the range by their own time, in windows if `window_size` is stated; the last 24 hours without a range. The lags are as of now.',
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

/** The last 24 hours when no range is asked for; half a range is refused. */
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
