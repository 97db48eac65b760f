/** Reads of the home page of an environment. */
import { queryOptions } from '@tanstack/react-query';
import { api, readData } from '../../client/client.ts';
import { getQuery, postQuery } from '../../client/queries.ts';
import { fillWindows, findHourBefore } from './event-windows.ts';

const RECENT_INVOICES = 8;
const WINDOWS = { revenue_trend: { window_count: 2, window_size: 'MONTH' as const } };

export const recentInvoicesQuery = getQuery('/invoices', {
  query: { limit: RECENT_INVOICES, order: 'desc', skip_line_items: true, expand: ['customer'] },
});

export const revenuesQuery = postQuery('/dashboard/revenues', WINDOWS, () =>
  api.POST('/dashboard/revenues', { body: WINDOWS }),
);

export const attentionQuery = getQuery('/dashboard/attention', {});

export type EventWindows = {
  readonly total: number;
  readonly counts: readonly number[];
  readonly start: string;
};

/** Counts of the last hour by minute. The key lacks the moving hour, so that a new one replaces the old. */
export const eventWindowsQuery = queryOptions({
  queryKey: ['/events/monitoring', 'hour'] as const,
  queryFn: async (): Promise<EventWindows> => {
    const range = findHourBefore(Date.now());
    const { total_count, points } = await readData(
      api.GET('/events/monitoring', { params: { query: { ...range, window_size: 'MINUTE' } } }),
    );
    return { total: total_count, counts: fillWindows(range, points ?? []), start: range.start_time };
  },
});
