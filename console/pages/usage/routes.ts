import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { getPagesQuery } from '../../client/pages.ts';
import { isDay } from '../../components/range.ts';
import { getReader } from '../../routing/read-ahead.ts';
import { environmentRoute } from '../../routing/root-route.ts';
import { compact, readCount, readOneOf, readText, type SearchInput } from '../../routing/search.ts';
import { USAGE_WINDOWS, type UsageWindowSize } from './usage-window.ts';

/**
 * `customer` is an external id; `split` is `customer`, or a property as `p:<name>`; `from` and `to` are days, `to` is not in the range.
 * `values` of a split are listed; `compare` adds the period before; `show=cost` draws the cost; `why=cost` opens its thread.
 */
export type UsageSearch = {
  meter?: string;
  customer?: string;
  split?: string;
  values?: number;
  from?: string;
  to?: string;
  window?: UsageWindowSize;
  compare?: 'before';
  show?: 'cost';
  why?: 'cost';
};

/** Parameters of the list of meters of the explorer. */
export const METERS = { query: { status: 'published' } as never };

const usage = createRoute({
  getParentRoute: () => environmentRoute,
  path: '/usage',
  validateSearch: (input: SearchInput): UsageSearch => {
    const [from, to] = [readText(input, 'from'), readText(input, 'to')];
    return compact({
      meter: readText(input, 'meter'),
      customer: readText(input, 'customer'),
      split: readText(input, 'split'),
      values: readCount(input, 'values'),
      ...(isDay(from) && isDay(to) && from < to ? { from, to } : {}),
      window: readOneOf(input, 'window', USAGE_WINDOWS),
      compare: readOneOf(input, 'compare', ['before']),
      show: readOneOf(input, 'show', ['cost']),
      why: readOneOf(input, 'why', ['cost']),
    });
  },
  loader: (input) =>
    getReader(input)?.read('meter', (queries) => queries.prefetchInfiniteQuery(getPagesQuery('/meters', METERS))),
  component: lazyRouteComponent(() => import('./usage-page.tsx'), 'UsagePage'),
});

export const usageRoutes = [usage] as const;
