/** Reads of the home page of an environment. */
import { api } from '../../client/client.ts';
import { getQuery, postQuery } from '../../client/queries.ts';

const RECENT_INVOICES = 8;
const WINDOWS = { revenue_trend: { window_count: 2, window_size: 'MONTH' as const } };

export const recentInvoicesQuery = getQuery('/invoices', {
  query: { limit: RECENT_INVOICES, order: 'desc', skip_line_items: true, expand: ['customer'] },
});

export const revenuesQuery = postQuery('/dashboard/revenues', WINDOWS, () =>
  api.POST('/dashboard/revenues', { body: WINDOWS }),
);

export const attentionQuery = getQuery('/dashboard/attention', {});
